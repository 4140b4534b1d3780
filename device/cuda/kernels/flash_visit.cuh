// Which queries see some of a tile's keys, QUERIES at a time, for the kernels whose blocks have keys.

// A visit is such queries of one of the heads that share the keys.
struct Visit {
	int head, last_head;
	int at, end; // numbers of runs of QUERIES queries, or meetings of the plan
	int part;    // of the meeting's unit
};

DEVICE Queries visited(const Visit &v, const Plan &p, int length) {
#if LAYOUT
	const Unit &u = p.units[p.of_tiles[v.at].other];
	return Queries{u.first + v.part * QUERIES * u.step, u.step, u.count - v.part * QUERIES, 0, 0, 0, length};
#else
	return Queries{v.at * QUERIES, 1, QUERIES, 0, 0, 0, length};
#endif
}

// settle passes over what is not to be visited. first and high are the first and the last key of the tile, graph is where the tiles
// of its graph begin: heads of other graphs do not see it.
DEVICE void settle(Visit &v, const Plan &p, const List &list, int first, int high, int length, const int *start, int graph) {
	for (;;) {
		if (v.at >= v.end) {
			if (v.head >= v.last_head) return;
			v.head++;
			v.part = 0;
			v.at = LAYOUT ? list.begin : first / QUERIES;
			v.end = LAYOUT ? list.end : (length + QUERIES - 1) / QUERIES;
#if LAYOUT
			if (p.graphs[v.head % p.heads].tile != graph) v.at = v.end;
#endif
			continue;
		}
		const Queries q = visited(v, p, length);
		const bool none = q.count <= 0 || q.first >= length;
		if (!none && !(start && start[q.first] > high)) return;
#if LAYOUT
		v.part++;
		if (none || v.part * QUERIES >= TILE) { v.part = 0; v.at++; }
#else
		v.at = v.end; // later queries see no more of the tile
#endif
	}
}

DEVICE void visit_on(Visit &v) {
	if (LAYOUT && (v.part + 1) * QUERIES < TILE) { v.part++; return; }
	v.part = 0;
	v.at++;
}
