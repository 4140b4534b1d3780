#include "textflag.h"

// Each entry is one byte, four times: a number that VPBROADCASTD spreads over all lanes.
#define BYTES(at, value) DATA bytes<>+at(SB)/4, $(value*0x01010101)

BYTES(0, 0x20)   // lower case; also the blank
BYTES(4, 0x1f)   // 0x80 - 'a': letters become the lowest signed bytes
BYTES(8, 0x9a)   // 0x80 + 26
BYTES(12, 0x50)  // 0x80 - '0'
BYTES(16, 0x8a)  // 0x80 + 10
BYTES(20, 0x77)  // 0x80 - '\t'
BYTES(24, 0x85)  // 0x80 + 5
BYTES(28, 0x64)  // 0x80 - 0x1c
BYTES(32, 0x84)  // 0x80 + 4
BYTES(36, 0x80)  // 0x80 - 0
BYTES(40, 0xa0)  // 0x80 + 0x20
BYTES(44, 0x7f)  // delete
BYTES(48, 0x5f)  // _
BYTES(52, 0x0a)  // LF
BYTES(56, 0x09)  // tab
BYTES(60, 0x27)  // '
BYTES(64, 0x2d)  // -
BYTES(68, 0x2e)  // .
BYTES(72, 0x3f)  // ?
BYTES(76, 0x21)  // !
BYTES(80, 0x22)  // "
BYTES(84, 0x29)  // )
BYTES(88, 0x5d)  // ]
BYTES(92, 0x23)  // #
BYTES(96, 0x7b)  // {, also [ in lower case
BYTES(100, 0x61) // a
BYTES(104, 0x63) // c
BYTES(108, 0x65) // e
BYTES(112, 0x69) // i
BYTES(116, 0x6a) // j
BYTES(120, 0x6b) // k
BYTES(124, 0x6d) // m
BYTES(128, 0x70) // p
BYTES(132, 0x72) // r
BYTES(136, 0x73) // s
BYTES(140, 0x75) // u
BYTES(144, 0x76) // v
GLOBL bytes<>(SB), RODATA|NOPTR, $148

// MASK(lo, hi, off) packs the top bits of 64 bytes into a field of the block. Uses CX, DX.
#define MASK(lo, hi, off) \
	VPMOVMSKB lo, CX  \
	VPMOVMSKB hi, DX  \
	SHLQ $32, DX      \
	ORQ  DX, CX       \
	MOVQ CX, off(DI)

// EQUAL(c, lo, hi) marks the bytes that are c. Uses Y15.
#define EQUAL(c, lo, hi) \
	VPBROADCASTD bytes<>+c(SB), Y15 \
	VPCMPEQB Y0, Y15, lo \
	VPCMPEQB Y1, Y15, hi

// OREQUAL(c, lo, hi) marks those too. Uses Y13-Y15.
#define OREQUAL(c, lo, hi) \
	EQUAL(c, Y13, Y14)  \
	VPOR Y13, lo, lo    \
	VPOR Y14, hi, hi

// RANGE(a, b, shift, bound, lo, hi) marks the bytes of a, b that, with shift added, are below bound (signed). Uses Y14, Y15.
#define RANGE(a, b, shift, bound, lo, hi) \
	VPBROADCASTD bytes<>+shift(SB), Y14 \
	VPBROADCASTD bytes<>+bound(SB), Y15 \
	VPADDB   a, Y14, lo  \
	VPADDB   b, Y14, hi  \
	VPCMPGTB lo, Y15, lo \
	VPCMPGTB hi, Y15, hi

// THREE(c, d, e) marks in Y2, Y3 where c d e start, in any case. Uses Y12-Y15.
#define THREE(c, d, e) \
	VPBROADCASTD bytes<>+c(SB), Y15 \
	VPCMPEQB Y6, Y15, Y13  \
	VPCMPEQB Y7, Y15, Y14  \
	VPBROADCASTD bytes<>+d(SB), Y15 \
	VPCMPEQB Y8, Y15, Y12  \
	VPAND    Y12, Y13, Y13 \
	VPCMPEQB Y9, Y15, Y12  \
	VPAND    Y12, Y14, Y14 \
	VPBROADCASTD bytes<>+e(SB), Y15 \
	VPCMPEQB Y10, Y15, Y12 \
	VPAND    Y12, Y13, Y13 \
	VPCMPEQB Y11, Y15, Y12 \
	VPAND    Y12, Y14, Y14 \
	VPOR     Y13, Y2, Y2   \
	VPOR     Y14, Y3, Y3

// func classifyAVX2(blocks *block, text *byte, n int)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-24
	MOVQ blocks+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ n+16(FP), BX
	XORL R8, R8

loop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPBROADCASTD bytes<>+0(SB), Y15
	VPOR Y0, Y15, Y6
	VPOR Y1, Y15, Y7
	VPOR 1(SI), Y15, Y8
	VPOR 33(SI), Y15, Y9
	VPOR 2(SI), Y15, Y10
	VPOR 34(SI), Y15, Y11

	VPBROADCASTD bytes<>+96(SB), Y15
	VPCMPEQB Y6, Y15, Y2
	VPCMPEQB Y7, Y15, Y3
	THREE(144, 100, 104)    // vac
	THREE(128, 136, 140)    // psu
	THREE(120, 112, 108)    // kie
	THREE(132, 124, 136)    // rms
	THREE(116, 100, 144)    // jav
	MASK(Y2, Y3, 88)        // odd

	RANGE(Y6, Y7, 4, 8, Y8, Y9)
	MASK(Y8, Y9, 0)         // letter
	RANGE(Y0, Y1, 12, 16, Y10, Y11)
	MASK(Y10, Y11, 8)       // digit
	VPOR Y8, Y10, Y2
	VPOR Y9, Y11, Y3
	OREQUAL(48, Y2, Y3)
	MASK(Y2, Y3, 16)        // word

	EQUAL(52, Y4, Y5)
	MASK(Y4, Y5, 24)        // newline
	RANGE(Y0, Y1, 20, 24, Y2, Y3)
	OREQUAL(0, Y2, Y3)
	RANGE(Y0, Y1, 28, 32, Y8, Y9)
	VPOR Y8, Y2, Y2
	VPOR Y9, Y3, Y3
	MASK(Y2, Y3, 32)        // space
	MASK(Y0, Y1, 40)        // foreign

	OREQUAL(56, Y4, Y5)
	RANGE(Y0, Y1, 36, 40, Y2, Y3)
	VPANDN Y2, Y4, Y2
	VPANDN Y3, Y5, Y3
	OREQUAL(44, Y2, Y3)
	MASK(Y2, Y3, 48)        // control

	EQUAL(60, Y4, Y5)       // '
	EQUAL(64, Y2, Y3)
	VPOR Y4, Y2, Y2
	VPOR Y5, Y3, Y3
	MASK(Y2, Y3, 56)        // joiner
	OREQUAL(80, Y4, Y5)
	OREQUAL(84, Y4, Y5)
	OREQUAL(88, Y4, Y5)
	MASK(Y4, Y5, 64)        // closer

	EQUAL(68, Y2, Y3)
	OREQUAL(72, Y2, Y3)
	OREQUAL(76, Y2, Y3)
	MASK(Y2, Y3, 72)        // mark
	EQUAL(92, Y2, Y3)
	MASK(Y2, Y3, 80)        // hash
	MOVQ R8, 96(DI)         // continued

	ADDQ $64, SI
	ADDQ $104, DI
	DECQ BX
	JNZ  loop
	VZEROUPPER
	RET
