// What the kernels of attention share: how queries meet keys. LAYOUT is 1 if blocks of queries and the keys of each come from a plan
// (flash_plan.go), and 0 if a query sees all keys before it. start is where each token's document begins, which never decreases along a row of
// the batch; a query sees no key before that. It is null without documents.
//
// Keys are taken 64 at a time: keys 64n … 64n+63 of a row, or a tile of the plan. What a query gets depends on its tiles and their
// order alone, not on what other queries share its block, so that attention with a cache has the bits of attention without.

const int TILE = 64;
const int NOWHERE = 0x7fffffff; // the position of a slot without a key

// A graph is what one query head goes by: ranges of units and tiles, how many units and tiles the heads before it have, and where its
// lists of the slots of each query and key begin.
struct Graph { int unit, units, tile, tiles, units_before, tiles_before, queries, keys; };

// A unit is up to 64 queries first, first+step, … and its meetings: tiles of keys in order.
struct Unit { int first, step, count, begin, end, unused[3]; };

// A meeting is a unit and a tile that see each other, listed once by each. other is the number of the tile, or unit, within the plan.
// low and high are the first and last position of the tile; whole says that every query of the unit sees 64 keys there.
struct Meeting { int other, limits, low, high, whole, unused[3]; };

// A limit says that a key is seen from distances near … far−1.
struct Limit { int near, far; };

// A list is a range of meetings.
struct List { int begin, end; };

// A plan is a compiled layout. Without one there are no pointers.
struct Plan {
	const Graph *graphs; // [heads], over and over again
	const Unit *units;
	const Meeting *of_units, *of_tiles;
	const List *lists;   // [tiles]: meetings in of_tiles
	const int *tiles;    // [tiles, 64]: positions
	const Limit *limits; // [limits, 64]
	int heads;
};

#define PLAN const Graph *graphs, const Unit *units, const Meeting *of_units, const Meeting *of_tiles, const List *lists, const int *tiles, const Limit *limits, i64 plan_heads
#define PLANNED Plan{graphs, units, of_units, of_tiles, lists, tiles, limits, (int)plan_heads}

// A block of queries of one row of the batch: positions first, first+step, …; of a block of rows queries.
struct Queries {
	int first, step, count;
	int begin, end;  // its meetings
	int from, until; // positions outside are not asked for
};

// position returns where query r of a block is, or −1 if there is none.
DEVICE int position(const Queries &q, int r) {
	int at = q.first + r * q.step;
	return r < q.count && at >= q.from && at < q.until ? at : -1;
}

// last_of returns the last position of a block, of which the first is asked for or before it.
DEVICE int last_of(const Queries &q) {
	int last = q.first + (q.count - 1) * q.step;
	return last < q.until ? last : q.first + (q.until - 1 - q.first) / q.step * q.step;
}

DEVICE Queries unit_of(const Unit &u, int from, int until) {
	return Queries{u.first, u.step, u.count, u.begin, u.end, from, until};
}

// A walk goes over the tiles of keys that a block of queries sees.
struct Walk {
	int at, end;     // numbers of tiles, or meetings of the plan
	int low, common; // the first keys of the documents of the first and of the last query
	int first, last; // query
};

// walk_on passes over meetings of which nothing is seen.
DEVICE void walk_on(Walk &w, const Plan &p) {
#if LAYOUT
	while (w.at < w.end && (p.of_units[w.at].high < w.low || p.of_units[w.at].low > w.last)) w.at++;
#endif
}

// walk begins a walk. start is that of the row of the batch, or null.
DEVICE Walk walk(const Queries &q, const Plan &p, const int *start) {
	Walk w = {q.begin, q.end, 0, 0, q.first, last_of(q)};
	if (start) {
		w.low = start[max(q.first, q.from)];
		w.common = start[w.last];
	}
#if LAYOUT
	walk_on(w, p);
#else
	w.at = w.low / TILE;
	w.end = w.last / TILE + 1;
#endif
	return w;
}

// key_at returns the position of key r of tile at of a walk.
DEVICE int key_at(const Plan &p, int at, int r) {
#if LAYOUT
	return p.tiles[p.of_units[at].other * TILE + r];
#else
	return at * TILE + r;
#endif
}

// whole reports whether every query sees all keys of the tile.
DEVICE bool whole(const Walk &w, const Plan &p) {
#if LAYOUT
	const Meeting &e = p.of_units[w.at];
	return e.whole && e.low >= w.common;
#else
	return w.at * TILE + TILE - 1 <= w.first && w.at * TILE >= w.common;
#endif
}

// A slot is a key of a tile: its position, and the queries from … until−1 that may see it.
struct Slot { int key, from, until; };

DEVICE Slot slot_of(int key, Limit l) {
	if (key == NOWHERE || l.far <= l.near) return Slot{key, NOWHERE, 0};
	return Slot{key, l.near > NOWHERE - key ? NOWHERE : key + l.near, l.far > NOWHERE - key ? NOWHERE : key + l.far};
}

// sees reports whether the query at a position sees a key, the first key of its document being start.
DEVICE bool sees(int query, const Slot &k, int start) {
	return query >= k.from && query < k.until && k.key >= start;
}

// row_start returns start of a row of the batch.
DEVICE const int *row_start(const int *start, int length) { return start ? start + (i64)blockIdx.z * length : start; }

// begin_of returns the first key that the query at a position, or −1, may see.
DEVICE int begin_of(const int *start, int at) { return start && at >= 0 ? start[at] : 0; }

// tile_of returns where results of a unit or tile are kept apart: number at of those of this head and the ones before it in the plan, of which
// there are all, for one row of the batch after the other.
DEVICE i64 tile_of(const Plan &p, int head, int heads, i64 all, int at) {
	return ((i64)blockIdx.z * (heads / p.heads) + head / p.heads) * all + at;
}

DEVICE float exp2_of(float x) { return exp2f(x); }
DEVICE double exp2_of(double x) { return exp2(x); }
DEVICE float log2_of(float x) { return log2f(x); }
DEVICE double log2_of(double x) { return log2(x); }
DEVICE float fma_of(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double fma_of(double x, double y, double z) { return fma(x, y, z); }

// e4m3 rounds a probability p, from 0 to 1, to 2⁻⁸·E4M3(2⁸·p), ties to even: to three bits behind the leading one, and below 2⁻¹⁴ to
// multiples of 2⁻¹⁷ (device.Heads.FP8).
DEVICE float e4m3(float p) {
	const float step = fmaxf(__uint_as_float(__float_as_uint(p) & 0x7f800000u), 0x1p-14f) * 0x1.8p20f;
	return p + step - step;
}

// sunk adds a sink to a query whose keys have the log-sum-exp z, in base 2, and the factor of the output: it returns the log-sum-exp of both.
DEVICE A sunk(A &factor, A z, A sink) {
	sink *= A(1.4426950408889634);
	const A top = z > sink ? z : sink, both = top + log2_of(exp2_of(z - top) + exp2_of(sink - top));
	factor *= exp2_of(z - both);
	return both;
}

// capped returns limit·tanh(x/limit), the soft-cap of a product of query and key, and sets slope to its derivative.
DEVICE A capped(A x, A limit, A &slope) {
	const A t = tanh_of(x / limit);
	slope = 1 - t * t;
	return limit * t;
}
