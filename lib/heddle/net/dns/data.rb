# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # The data of records, with one class for each record type. The objects are frozen. Each class reads its data from
      # a message and writes it into one; `to_s` returns the format of zone files.
      #
      # {Data.from} makes such an object from a String or an Array.
      module Data
        # IPv4 address (RFC 1035, section 3.4.1).
        A = ::Data.define(:address) do
          def self.read(reader, length) = new(AddressText.from_bytes(Data.sized(reader, length, 4)))
          def write(writer) = writer.raw(bytes)
          def bytes = AddressText.ipv4_bytes(address)
          def to_s = address
        end

        # IPv6 address (RFC 3596).
        AAAA = ::Data.define(:address) do
          def self.read(reader, length) = new(AddressText.from_bytes(Data.sized(reader, length, 16)))
          def write(writer) = writer.raw(bytes)
          def bytes = AddressText.ipv6_bytes(address)
          def to_s = address
        end

        # Types whose data is a single name (RFC 1035, section 3.3). The name may be compressed.
        NS = ::Data.define(:name) do
          def self.read(reader, _length) = new(Data.name(reader))
          def write(writer) = writer.name(name)
          def to_s = "#{name}."
        end
        class CNAME < NS
        end

        class PTR < NS
        end

        # Mail exchange (RFC 1035, section 3.3.9).
        MX = ::Data.define(:preference, :exchange) do
          def self.read(reader, _length) = new(reader.unpack("n", 2).first, Data.name(reader))

          def write(writer)
            writer.pack([Data.uint(preference, 16)], "n")
            writer.name(exchange)
          end

          def to_s = "#{preference} #{exchange}."
        end

        # Start of authority (RFC 1035, section 3.3.13). `minimum`: maximum seconds for which resolvers may cache that a
        # name does not exist (RFC 2308, section 4).
        SOA = ::Data.define(:primary, :contact, :serial, :refresh, :retry, :expire, :minimum) do
          def self.read(reader, _length) = new(Data.name(reader), Data.name(reader), *reader.unpack("N5", 20))

          def write(writer)
            writer.name(primary)
            writer.name(contact)
            writer.pack([serial, refresh, self.retry, expire, minimum].map { |value| Data.uint(value, 32) }, "N5")
          end

          def to_s = "#{primary}. #{contact}. #{serial} #{refresh} #{self.retry} #{expire} #{minimum}"
        end

        # Text: one or more Strings of at most 255 bytes (RFC 1035, section 3.3.14).
        TXT = ::Data.define(:strings) do
          def self.read(reader, length)
            strings = []
            at_end = reader.offset + length
            strings << reader.character_string.freeze while reader.offset < at_end
            new(strings.freeze)
          end

          # @param text [String, Array<String>] Strings longer than 255 bytes are split
          # @raise [ArgumentError] for anything else
          def self.of(text)
            raise ArgumentError unless text && Array(text).all?(String)

            new(Array(text).flat_map { |part| part.empty? ? [""] : part.b.scan(/.{1,255}/mn) }.freeze)
          end

          # @return [String] the strings joined, in UTF-8 if they are valid UTF-8, else in BINARY
          def text
            whole = strings.join.force_encoding(Encoding::UTF_8)
            whole.valid_encoding? ? whole : whole.b
          end

          def write(writer)
            strings.empty? ? writer.character_string("") : strings.each { |one| writer.character_string(one) }
          end

          def to_s = strings.map { |string| Data.quote(string) }.join(" ")
        end

        # Service location (RFC 2782). The target must not be compressed.
        SRV = ::Data.define(:priority, :weight, :port, :target) do
          def self.read(reader, _length) = new(*reader.unpack("n3", 6), Data.name(reader))

          def write(writer)
            writer.pack([priority, weight, port].map { |value| Data.uint(value, 16) }, "n3")
            writer.whole_name(target)
          end

          def to_s = "#{priority} #{weight} #{port} #{target}."
        end

        # The certificate authorities that may issue certificates for the domain (RFC 8659).
        CAA = ::Data.define(:flags, :tag, :value) do
          def self.read(reader, length)
            at_end = reader.offset + length
            flags = reader.octet
            tag = reader.character_string.freeze
            raise MalformedError, "the tag of a CAA record is longer than the record" if reader.offset > at_end

            new(flags, tag, reader.bytes(at_end - reader.offset).freeze)
          end

          def write(writer)
            writer.pack([Data.uint(flags, 8)], "C")
            writer.character_string(tag)
            writer.raw(value.b)
          end

          def to_s = "#{flags} #{tag} #{Data.quote(value)}"
        end

        # Processor and operating system (RFC 1035, section 3.3.2). {Query#forward} answers ANY queries with it (RFC
        # 8482).
        HINFO = ::Data.define(:cpu, :os) do
          def self.read(reader, _length) = new(reader.character_string.freeze, reader.character_string.freeze)

          def write(writer)
            writer.character_string(cpu)
            writer.character_string(os)
          end

          def to_s = "#{Data.quote(cpu)} #{Data.quote(os)}"
        end

        # The raw data of a type that has no class here (RFC 3597).
        Opaque = ::Data.define(:bytes) do
          def self.read(reader, length) = new(reader.bytes(length).freeze)
          def write(writer) = writer.raw(bytes)
          def to_s = "\\# #{bytes.bytesize} #{bytes.unpack1("H*")}".strip
        end

        CLASSES = {
          A: A, AAAA: AAAA, NS: NS, CNAME: CNAME, PTR: PTR, MX: MX, SOA: SOA, TXT: TXT, SPF: TXT, SRV: SRV, CAA: CAA,
          HINFO: HINFO
        }.freeze

        module_function

        # @param type [Symbol]
        # @param value [Object] an object of the type's class; a String for types with one field, an Array of all fields
        #   for other types; bytes for a type without a class
        # @return [Object]
        # @raise [ArgumentError] if the value does not fit the type
        def from(type, value)
          kind = CLASSES.fetch(type, Opaque)
          return value if value.is_a?(kind) || value.is_a?(Opaque)
          return TXT.of(value) if kind == TXT

          data = kind.new(*value)
          data.bytes if [A, AAAA].include?(kind) # raises unless it is such an address
          data
        rescue MalformedError => e
          raise ArgumentError, e.message
        rescue ArgumentError
          raise ArgumentError, "#{value.inspect} is not data for a #{type} record, which has the fields " \
                               "#{kind.members.join(", ")}"
        end

        # @param type [Symbol]
        # @param length [Integer] bytes of data, starting at the reader's offset
        # @return [Object] an object of the type's class
        # @raise [MalformedError] if the data has another length
        def read(type, reader, length)
          at_end = reader.offset + length
          reader.bytes_at(reader.offset, length)
          data = CLASSES.fetch(type, Opaque).read(reader, length)
          return data if reader.offset == at_end

          raise MalformedError, "the length field of a #{type} record is #{length}, but its data has another size"
        end

        def name(reader) = Name.from_wire(reader.name).freeze

        def sized(reader, length, wanted)
          raise MalformedError, "an IP address has #{length} bytes, but must have #{wanted}" unless length == wanted

          reader.bytes(length)
        end

        def uint(value, bits)
          return value if value.is_a?(Integer) && value >= 0 && value < (1 << bits)

          raise MalformedError, "#{value.inspect} is not an unsigned integer of #{bits} bits"
        end

        def quote(string)
          %("#{string.b.gsub(/[^ -~]|["\\]/n) { |c| /[ -~]/.match?(c) ? "\\#{c}" : format("\\%03d", c.ord) }}")
        end
      end
    end
  end
end
