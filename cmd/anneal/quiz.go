package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"

	"anneal/lab/primer"
)

type quizCmd struct {
	Questions count  `default:"10" placeholder:"N" help:"Number of questions."`
	Seed      uint64 `placeholder:"N" help:"Seed of the questions: the same seed asks the same ones. 0: different questions each time."`
}

func (quizCmd) Help() string {
	return example("anneal quiz", "anneal quiz --questions 3 --seed 7", "anneal quiz --seed 7 --json") +
		"\n\nQuestions come from the tables of `anneal explain formats`, `optimizers`, `mixed-precision`, `zero` and " +
		"`recompute`: numbers are computed, and every answer is explained. With --json it prints questions and answers."
}

func (c quizCmd) Run(s *session) error {
	const most = 50
	if c.Questions < 1 || c.Questions > most {
		return &usageError{fmt.Sprintf("%d questions", c.Questions), fmt.Sprintf("try 1 to %d", most)}
	}
	seed := c.Seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano() % 1_000_000)
	}
	list, err := primer.Quiz(seed, int(c.Questions))
	if err != nil {
		return err
	}
	if s.json {
		return s.emit(map[string]any{"seed": seed, "questions": list})
	}
	lines := bufio.NewScanner(s.stdin)
	right, asked := 0, 0
	for i, q := range list {
		s.prosef("   ", "\n%d. %s\n", i+1, q.Text)
		for n, choice := range q.Choices {
			s.printf("   %d  %s\n", n+1, choice)
		}
		n, ok := answer(s, lines, len(q.Choices))
		if !ok {
			break
		}
		asked++
		verdict := "no: " + q.Choices[q.Right] + "."
		if n == q.Right+1 {
			right++
			verdict = "yes."
		}
		s.prosef("   ", "   %s %s\n", verdict, q.Why)
	}
	s.printf("\n%d of %d. The tables: anneal explain %s. The same questions: anneal quiz --seed %d\n", right, asked,
		strings.Join(primer.Topics(), " | "), seed)
	return nil
}

// answer reads the number of a choice. It reports false at the end of the input.
func answer(s *session, lines *bufio.Scanner, choices int) (int, bool) {
	for {
		s.printf("   > ")
		if !lines.Scan() {
			s.printf("\n")
			return 0, false
		}
		if n, err := strconv.Atoi(strings.TrimSpace(lines.Text())); err == nil && n >= 1 && n <= choices {
			return n, true
		}
		s.printf("   a number from 1 to %d\n", choices)
	}
}
