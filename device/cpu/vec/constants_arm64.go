package vec

// philoxLanes holds the numbers of four blocks of Philox.
//
//lint:ignore U1000 The assembly reads it; see gen.
var philoxLanes = [4]uint32{0, 1, 2, 3}
