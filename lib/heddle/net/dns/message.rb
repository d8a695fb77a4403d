# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # A DNS message (RFC 1035, section 4). Reads and writes its binary form.
      #
      #     query = Heddle::Net::DNS::Message.query("example.org", :MX)
      #     reply = Heddle::Net::DNS::Message.parse(bytes)
      #     reply.answers.each { |record| puts record }
      class Message
        HEADER_SIZE = 12
        # flag => its bit in the second 16-bit word of the header
        FLAGS = {
          response: 0x8000, authoritative: 0x0400, truncated: 0x0200, recursion_desired: 0x0100,
          recursion_available: 0x0080, authentic: 0x0020, checking_disabled: 0x0010
        }.freeze
        MAX_SIZE = 65_535
        # Maximum number of aliases (CNAME) to follow in one message.
        MAX_ALIASES = 16
        private_constant :MAX_ALIASES

        # @return [Integer] 0 to 65535; the client chooses it, and the response repeats it
        attr_accessor :id

        # @return [Integer] 16 bits. Each flag in {FLAGS} also has two methods, such as `truncated?` and `truncated=`
        attr_accessor :flags

        # @return [EDNS, nil] the OPT record's content; nil: the message has no OPT record
        attr_accessor :edns

        # @return [Array<Question>]
        attr_reader :questions

        # @return [Array<Record>]
        attr_reader :answers, :authorities, :additionals

        # @param name [String]
        # @param type [Symbol]
        # @param edns [EDNS, nil]
        # @param recursion [Boolean] whether the server should ask other servers
        # @return [Message] a query with a random id
        def self.query(name, type, edns: EDNS.of, recursion: true)
          new(Random.urandom(2).unpack1("n"), recursion ? FLAGS[:recursion_desired] : 0, edns).tap do |message|
            message.questions << Question.of(name, type)
          end
        end

        # @param bytes [String]
        # @return [Message]
        # @raise [MalformedError]
        def self.parse(bytes)
          if bytes.bytesize < HEADER_SIZE
            raise MalformedError, "a DNS message must have at least #{HEADER_SIZE} bytes, but has #{bytes.bytesize}"
          end

          id, flags, *counts = bytes.unpack("n6")
          read(bytes, id, flags, counts)
        end

        # @api private
        # @return [Message] a message whose header was already parsed
        def self.read(bytes, id, flags, counts)
          new(id, flags).tap { |message| message.read(MessageReader.new(bytes, HEADER_SIZE), counts) }
        end

        def initialize(id, flags = 0, edns = nil)
          @id = id
          @flags = flags
          @edns = edns
          @udp_limit = EDNS::MIN_SIZE
          @questions = []
          @answers = []
          @authorities = []
          @additionals = []
        end

        FLAGS.each do |name, bit|
          define_method(:"#{name}?") { @flags.anybits?(bit) }
          define_method(:"#{name}=") { |on| @flags = on ? @flags | bit : @flags & ~bit }
        end

        # @return [Integer] maximum bytes of this message over UDP; set for responses
        attr_accessor :udp_limit

        # @return [Question, nil]
        def question = @questions.first

        # @api private
        # @return [Array<Record>] the answers with this name and type
        def records(name, type) = answers.select { |record| record.type == type && record.name.casecmp?(name) }

        # @api private
        # @return [Array<Record>] the CNAME records that lead from this name to the last alias
        def aliases(name)
          all = answers.select { |record| record.type == :CNAME }
          MAX_ALIASES.times.with_object([]) do |_, found|
            link = all.find { |record| record.name.casecmp?(name) } or break found
            found << link
            name = link.data.name
          end
        end

        # @return [Integer] 0 for a standard query (RFC 6895, section 2.2)
        def opcode = (@flags >> 11) & 15

        # @return [Symbol]
        def rcode = Codes.rcode_name((@flags & 15) | ((@edns&.rcode_high || 0) << 4))

        # @param name [Symbol] needs {#edns} if the RCODE is above 15
        def rcode=(name)
          number = Codes.rcode_number(name)
          @flags = (@flags & ~15) | (number & 15)
          high = number >> 4
          @edns = @edns.with(rcode_high: high) if @edns && @edns.rcode_high != high
        end

        # Removes all records except OPT ({#edns}). The question remains.
        def clear = [@answers, @authorities, @additionals].each(&:clear)

        # @api private
        def read(reader, counts)
          counts[0].times { @questions << Question.read(reader) }
          read_records(reader, counts[1], @answers)
          read_records(reader, counts[2], @authorities)
          read_records(reader, counts[3], @additionals, opt: true)
        end

        # @param limit [Integer] maximum number of bytes. If an additional record does not fit, it and the additional
        #   records after it are omitted. If answers or authorities don't fit, all records are omitted, and the TC flag
        #   is set (RFC 2181, section 9). The question and OPT are always written.
        # @return [String] the binary form
        def encode(limit = MAX_SIZE)
          counts = [@questions.size, @answers.size, @authorities.size, @additionals.size + (@edns ? 1 : 0)]
          writer = MessageWriter.new([@id, @flags, *counts].pack("n6"))
          @questions.each { |question| question.write(writer) }
          room = limit - (@edns ? @edns.bytesize : 0)
          bare = writer.bytes.bytesize
          fits = write_records(writer, @answers, room) && write_records(writer, @authorities, room)
          writer.cut(bare) unless fits
          further = fits ? write_additionals(writer, room) : 0
          @edns&.write(writer)
          correct_header(writer.bytes, fits, further) if !fits || further < @additionals.size
          writer.bytes
        end

        # @return [String] text in the format of dig
        def to_s
          lines = [";; #{rcode} id #{@id} #{FLAGS.keys.select { |name| public_send(:"#{name}?") }.join(" ")}".rstrip]
          lines.concat(@questions.map { |question| ";#{question}" })
          lines.concat([@answers, @authorities, @additionals].flatten.map(&:to_s)).join("\n")
        end

        private

        def read_records(reader, count, into, opt: false)
          count.times do
            owner = reader.name
            type, klass, ttl, length = reader.unpack("nnNn", 10)
            type = Codes.type_name(type)
            next read_opt(reader, owner, klass, ttl, length) if type == :OPT && opt

            ttl = 0 if ttl > Record::MAX_TTL
            data = klass == Codes::IN ? Data.read(type, reader, length) : reader.bytes(length)
            into << Record.new(Name.from_wire(owner).freeze, type, ttl, data) if klass == Codes::IN
          end
        end

        # RFC 6891, section 6.1.1: a message has at most one OPT record, and its owner is the root.
        def read_opt(reader, owner, klass, ttl, length)
          raise MalformedError, "the message has a second OPT record" if @edns
          raise MalformedError, "the OPT record has an owner name other than the root" unless owner.empty?

          reader.bytes_at(reader.offset, length)
          @edns = EDNS.read(reader, klass, ttl, length)
        end

        def write_records(writer, records, room)
          records.all? do |record|
            record.write(writer)
            writer.bytes.bytesize <= room
          end
        end

        def write_additionals(writer, room)
          @additionals.each_with_index do |record, index|
            before = writer.bytes.bytesize
            record.write(writer)
            next if writer.bytes.bytesize <= room

            writer.cut(before)
            return index
          end
          @additionals.size
        end

        # Corrects the counts in the header for the omitted records, and sets TC if answers or authorities did not fit.
        def correct_header(bytes, fits, further)
          flags = fits ? @flags : @flags | FLAGS[:truncated]
          counts = fits ? [@answers.size, @authorities.size] : [0, 0]
          bytes[2, 2] = [flags].pack("n")
          bytes[6, 6] = [*counts, further + (@edns ? 1 : 0)].pack("n3")
        end
      end
    end
  end
end
