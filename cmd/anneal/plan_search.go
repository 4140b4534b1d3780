package main

import (
	"fmt"
	"slices"

	"anneal/internal/units"
	"anneal/plan/cluster"
)

// search finds the best meshes and explains why others are not.
func (c planCmd) search(s *session, r *cluster.Run, fixed cluster.Axes, tokens float64) error {
	found, err := cluster.Find(*r, fixed)
	if err != nil {
		return err
	}
	if found.Best == nil {
		return unfitSearch(r, found)
	}
	within, _ := c.within() // run has checked it
	late := func(f *cluster.Found) bool { return within > 0 && tokens/f.Step.Tokens > within.Seconds() }
	best := planned(found.Best.Run, found.Best.Step, tokens)
	if late(found.Best) {
		reason := fmt.Sprintf("no mesh finishes within %s: the fastest, %s, takes %s", days(within.Hours()/24),
			found.Best.Mesh, days(best.Days))
		return noMesh(reason, &usageError{message: reason}, true, found.Refused)
	}
	found.Front = slices.DeleteFunc(found.Front, late)
	if err := c.drawStep(s, found.Best.Run); err != nil {
		return err
	}
	best.Rejected = append(found.Refused, found.Neighbours...)
	for _, f := range found.Front {
		best.Front = append(best.Front, planned(f.Run, f.Step, tokens))
	}
	chart := frontChart(r.Shape.Name, best.Front, found.Front)
	if s.json {
		if err := s.picture(c.SVG, chart.SVG); err != nil {
			return err
		}
		return s.emit(best)
	}
	were := "meshes were"
	if found.Tried == 1 {
		were = "mesh was"
	}
	s.printf("%s %s considered; the fastest is\n\n", units.Commas(found.Tried), were)
	s.describe(found.Best.Run, best, tokens)
	if err := c.printStep(s, found.Best.Run); err != nil {
		return err
	}
	s.front(found.Front, best.Front)
	if err := s.draw(chart, c.SVG); err != nil {
		return err
	}
	s.neighbours(found)
	return nil
}

// front prints the Pareto front: the meshes that no other mesh beats.
func (s *session) front(found []*cluster.Found, list []plannedRun) {
	s.printf("\nevery other mesh is slower than one of these, and not clearly better in cost or free memory\n")
	s.printf("%11s %9s %14s %6s  %s\n", "step", "days", "device hours", "free", "devices, mesh")
	for i, f := range found {
		s.printf("%11s %9s %14s %5.0f%%  %7s %s\n", stepTime(f.Step.Seconds), oneDecimal(list[i].Days),
			hundredths(list[i].Hours), 100*f.Room, units.Commas(f.Count), f.Mesh)
	}
}

// neighbours prints why the meshes that differ from the best in one axis are not the best, and how many meshes were
// refused.
func (s *session) neighbours(found *cluster.Search) {
	s.printf("\nthe fastest with one axis changed\n")
	for _, x := range found.Neighbours {
		s.printf("  %-15s %s\n", x.Change, x.Reason)
	}
	s.printf("\nother meshes: how many for each reason, and the one that came nearest\n")
	for _, x := range found.Refused {
		s.printf("  %8s  %s\n            %s\n", units.Commas(x.Count), x.Mesh, x.Reason)
	}
}
