# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # A name server's message as the answer to one question. Nothing in it is trusted: records that do not
      # answer the question are ignored, and the work is bounded by the size of the message.
      #
      # @api private
      class Reply
        NO_ERROR = 0
        FORMAT_ERROR = 1
        NAME_ERROR = 3
        NOT_IMPLEMENTED = 4
        RESPONSE = 0x8000
        OPCODE = 0x7800
        TRUNCATED = 0x0200
        RCODE = 0x000f
        HEADER_SIZE = 12

        # RFC 2181, section 8: a greater TTL counts as zero; and none is believed for longer than a day.
        MAX_TTL = 86_400
        TTL_LIMIT = 0x8000_0000
        # RFC 2308, section 5, finds one to three hours good for absent names.
        MAX_NEGATIVE_TTL = 10_800
        MAX_ALIASES = 16
        # Records that are read of one section: more addresses are not needed, and a maliciously slow name takes 50 µs.
        MAX_RECORDS = 512
        ADDRESS_SIZES = { Query::A => 4, Query::AAAA => 16 }.freeze

        # @param bytes [String]
        # @param query [Query]
        # @return [Reply, nil] nil when the message does not answer the query
        def self.read(bytes, query)
          return nil if bytes.bytesize < HEADER_SIZE

          id, flags, *counts = bytes.unpack("n6")
          return nil unless id == query.id && flags.anybits?(RESPONSE) && flags.nobits?(OPCODE)

          reply = new(bytes, query, flags, counts)
          reply if reply.answers_question?
        rescue DNS::MalformedError
          nil
        end

        # @return [Answer, nil] nil when the server failed or the message was cut off
        attr_reader :answer

        def initialize(bytes, query, flags, counts)
          @bytes = bytes
          @reader = DNS::MessageReader.new(bytes, HEADER_SIZE)
          @query = query
          @flags = flags
          @questions, @answers, @authorities, = counts
          read if answers_question? && !truncated? && !failed?
        end

        def truncated? = @flags.anybits?(TRUNCATED)

        # The server could not answer; another one may.
        def failed? = ![NO_ERROR, NAME_ERROR].include?(rcode)

        # Whether the server seems not to know EDNS (RFC 6891, section 7).
        def edns_unknown? = [FORMAT_ERROR, NOT_IMPLEMENTED].include?(rcode)

        # @return [String] why the server failed
        def error = DNS::Codes.rcode_name(rcode).to_s

        def answers_question?
          return @asked if defined?(@asked)

          @asked = @questions == 1 ? question == [@query.name, @query.type, Query::IN] : @questions.zero? && failed?
        end

        private

        def rcode = @flags & RCODE

        def question
          [@reader.name, *@reader.unpack("nn", 4)]
        end

        def read
          records = read_records(@answers)
          name, ttl = follow_aliases(records)
          found = records.select { |record| record.is?(name, @query.type) }
          @answer = found.empty? ? nothing(name, ttl) : addresses(found, ttl)
        end

        def read_records(count)
          Array.new([count, MAX_RECORDS].min) { @reader.record }
        end

        # @return [Array(String, Integer)] the name at the end of the aliases and the least TTL on the way
        def follow_aliases(records)
          name = @query.name
          ttl = MAX_TTL
          MAX_ALIASES.times do
            link = records.find { |record| record.is?(name, Query::CNAME) } or break
            ttl = [ttl, seconds(link.ttl)].min
            name = @reader.name_at(link.offset)
          end
          [name, ttl]
        end

        def addresses(records, ttl)
          list = records.map { |record| address(record) }
          ttl = records.map { |record| seconds(record.ttl) }.push(ttl).min
          Answer.new(addresses: list.uniq.freeze, ttl: ttl, absent: false).freeze
        end

        def nothing(name, ttl)
          raise DNS::MalformedError, "#{@answers} answers, none of them to the question" if @answers > MAX_RECORDS

          absent = rcode == NAME_ERROR
          negative = negative_ttl
          if !absent && !negative && name != @query.name
            return Answer.new(addresses: [].freeze, ttl: ttl, absent: false, target: name).freeze
          end

          Answer.none(ttl: [ttl, negative || 0].min, absent: absent)
        end

        # The lesser of the SOA's own TTL and its MINIMUM (RFC 2308, section 5); without a SOA nothing may be kept.
        def negative_ttl
          soa = read_records(@authorities).find { |record| record.type == Query::SOA }
          return nil if soa.nil? || soa.length < 4

          minimum = @reader.bytes_at(soa.offset + soa.length - 4, 4).unpack1("N")
          [seconds(soa.ttl), seconds(minimum), MAX_NEGATIVE_TTL].min
        end

        def seconds(ttl)
          ttl >= TTL_LIMIT ? 0 : [ttl, MAX_TTL].min
        end

        def address(record)
          length = record.length
          bytes = @reader.bytes_at(record.offset, length)
          raise DNS::MalformedError, "address of #{length} bytes" unless length == ADDRESS_SIZES[record.type]

          DNS::AddressText.from_bytes(bytes)
        end
      end
    end
  end
end
