# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # The content of an OPT record, which describes what the sender of a message supports (RFC 6891). Frozen.
      #
      # - size [Integer] the largest message that the sender accepts over UDP, in bytes
      # - rcode_high [Integer] the upper eight bits of the RCODE
      # - version [Integer]
      # - dnssec [Boolean] the DO bit: the sender requests DNSSEC records (RFC 3225)
      # - options [Array<Array(Integer, String)>] code and bytes of each option
      EDNS = ::Data.define(:size, :rcode_high, :version, :dnssec, :options) do
        # @param klass [Integer] the record's class field, which contains the size
        # @param ttl [Integer] the record's TTL field, which contains rcode_high, version and the flags
        # @raise [MalformedError] if an option runs past the end of the record
        def self.read(reader, klass, ttl, length)
          at_end = reader.offset + length
          options = []
          while reader.offset < at_end
            code, size = reader.unpack("nn", 4)
            options << [code, reader.bytes(size)]
          end
          raise MalformedError, "the options of the OPT record run past its end" unless reader.offset == at_end

          new(klass, ttl >> 24, (ttl >> 16) & 0xff, ttl.anybits?(0x8000), options)
        end

        def self.of(size: EDNS::SIZE, rcode_high: 0, version: 0, dnssec: false, options: [])
          new(size, rcode_high, version, dnssec, options)
        end

        def write(writer)
          ttl = (rcode_high << 24) | (version << 16) | (dnssec ? 0x8000 : 0)
          writer.pack([0, Codes::TYPES[:OPT], size, ttl], "CnnN")
          writer.sized do
            options.each do |code, bytes|
              writer.pack([code, bytes.bytesize], "nn")
              writer.raw(bytes)
            end
          end
        end

        # @return [Integer] the size of the OPT record in a message
        def bytesize = 11 + options.sum { |_, bytes| 4 + bytes.bytesize }
      end
      # A message of this size fits into one packet on nearly all networks, so that responses are not fragmented (RFC
      # 9715).
      EDNS::SIZE = 1_232
      # Every receiver accepts messages of this size (RFC 1035, section 4.2.1). A smaller value of `size` counts as 512
      # (RFC 6891, section 6.2.3).
      EDNS::MIN_SIZE = 512
    end
  end
end
