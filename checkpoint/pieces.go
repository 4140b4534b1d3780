package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"anneal/internal/units"
)

const maxPieces = 8192 // of a tensor, one from each rank; those that may overlap are compared in pairs

// tensorEntry describes a tensor in a manifest. Its pieces cover it exactly once.
type tensorEntry struct {
	DType  string  `json:"dtype"`
	Shape  []int   `json:"shape"`
	Pieces []piece `json:"pieces,omitempty"`
	place          // place of the whole tensor, in manifests of versions without pieces
}

// piece is a region of a tensor, contiguous in a file in row-major order.
type piece struct {
	place
	Region
}

type place struct {
	File   string   `json:"file,omitempty"`
	Offset int64    `json:"offset,omitempty"` // of the first byte, in the file
	Size   int64    `json:"size,omitempty"`
	CRC32C checksum `json:"crc32c,omitempty"`
}

// whole converts the place of a tensor without pieces into its only piece.
func (t *tensorEntry) whole() error {
	if t.place == (place{}) {
		return nil
	}
	if t.Pieces != nil {
		return errors.New("it has a place of its own and pieces; it must have one of them")
	}
	t.Pieces, t.place = []piece{{place: t.place}}, place{}
	return nil
}

// kind returns the kind of the tensor, which is the first part of its files' names: "model", "optim" or "average".
func (t *tensorEntry) kind() string { return kindOf(t.Pieces[0].File) }

func kindOf(file string) string {
	kind, _, _ := strings.Cut(file, ".")
	return kind
}

// check returns an error unless the pieces lie within their files and cover the tensor exactly once.
func (t *tensorEntry) check(files map[string]int64) error {
	if len(t.Pieces) == 0 || len(t.Pieces) > maxPieces {
		return fmt.Errorf("%d pieces; there must be 1 to %d", len(t.Pieces), maxPieces)
	}
	spans := make([]placedSpan, 0, len(t.Pieces))
	for i := range t.Pieces {
		p := &t.Pieces[i]
		s, err := p.span(t.DType, t.Shape)
		size, ok := files[p.File]
		switch {
		case err != nil:
			return fmt.Errorf("piece %v: %w", p, err)
		case !ok || path.Ext(p.File) != ".safetensors":
			return fmt.Errorf("piece %v: the file is not listed", p)
		case kindOf(p.File) != t.kind():
			return fmt.Errorf("pieces %v and %v are in files of different kinds", &t.Pieces[0], p)
		case p.Size != s.size() || p.Offset < 0 || p.Offset > size || p.Size > size-p.Offset:
			return fmt.Errorf("piece %v does not match its place in the file: %d bytes at %d", p, p.Size, p.Offset)
		}
		if s.size() > 0 {
			spans = append(spans, placedSpan{s, p, s.first(), s.end()})
		}
	}
	return cover(t, spans)
}

// placedSpan is a piece's non-empty span, with the places in the tensor where it begins and ends.
type placedSpan struct {
	span
	*piece
	first, end int64
}

// cover returns an error unless every byte of a tensor is in exactly one of the spans.
func cover(t *tensorEntry, spans []placedSpan) error {
	slices.SortFunc(spans, func(a, b placedSpan) int { return cmp.Compare(a.first, b.first) })
	sum := int64(0)
	for i := range spans {
		a := &spans[i]
		sum += a.size()
		for j := i + 1; j < len(spans) && spans[j].first < a.end; j++ {
			if m := a.meet(&spans[j].span); m.size() > 0 {
				return fmt.Errorf("pieces %v and %v overlap", a.piece, spans[j].piece)
			}
		}
	}
	whole, err := Region{}.span(t.DType, t.Shape)
	if err != nil || sum == whole.size() {
		return err
	}
	// Before the first byte that is in no piece, the pieces have as many bytes before a place as the tensor has.
	gap := sort.Search(int(whole.size()), func(place int) bool {
		n := int64(0)
		for i := range spans {
			n += min(max(spans[i].before(int64(place)+1), spans[i].from), spans[i].to) - spans[i].from
		}
		return n <= int64(place)
	})
	return fmt.Errorf("element [%s] is in none of its %d pieces, which hold %d of %d bytes; the first piece is %v",
		units.List("%d", whole.index(int64(gap))), len(t.Pieces), sum, whole.size(), &t.Pieces[0])
}

// String returns the piece for messages.
func (p *piece) String() string { return fmt.Sprintf("%.120s", p.File+p.Region.String()) }

// header returns the name and shape that the piece of a tensor has in its safetensors file: those of the tensor if it
// is whole, the shape of the box, or the number of elements of a run.
func (r Region) header(name string, shape []int) (string, []int) {
	switch {
	case r.From != 0 || r.To != 0:
		shape = []int{int(r.To - r.From)}
	case !r.Box.isZero():
		shape = r.Box.Shape
	}
	return name + r.String(), shape
}
