package tfevents

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record frames data as a TFRecord: its length, the checksum of the length, the data, the checksum of the data.
func record(data []byte) []byte {
	b := make([]byte, 0, len(data)+16)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

// maskedCRC is CRC32C, rotated and offset, so that checksums of data that contains checksums stay effective:
//
//	(crc >> 15 | crc << 17) + 0xa282ead8
func maskedCRC(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}
