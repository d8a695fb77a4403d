# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # Checks a received message: it is ignored, answered with an error, or becomes a {Query} for the program. Messages
      # with the response flag are ignored, so that two servers can't respond to each other endlessly.
      class Reception
        # Maximum number of records in a query. Ordinary clients send at most two: OPT and a signature, which is
        # ignored.
        MAX_RECORDS = 8
        RESPONSE = 0x8000
        # Error responses repeat the opcode and the RD flag (RFC 1035, section 4.1.1).
        REPEATED = 0x7900
        TRANSFERS = %i[AXFR IXFR].freeze

        def initialize(server)
          @server = server
        end

        # @param bytes [String] the received message
        # @param source [Object] the sender
        # @return [Message, Query, nil] an error response to send; a query for the program; nil: ignore the message
        def judge(bytes, source)
          return nil if bytes.bytesize < Message::HEADER_SIZE

          id, flags, *counts = bytes.unpack("n6")
          return nil if flags.anybits?(RESPONSE)
          return error(id, flags, :NOTIMP) unless flags.nobits?(0x7800)
          return error(id, flags, :FORMERR) if counts[0] != 1 || counts[1] + counts[2] + counts[3] > MAX_RECORDS

          judge_query(Query.new(Message.read(bytes, id, flags, counts), source, @server))
        rescue MalformedError
          error(id, flags, :FORMERR)
        end

        private

        # @return [Message] only a header, because the question may be unreadable
        def error(id, flags, rcode) = Message.new(id, RESPONSE | (flags & REPEATED) | Codes::RCODES[rcode])

        def judge_query(query)
          rcode = fault(query) or return query

          query.fail(rcode).response
        end

        # @return [Symbol, nil] the RCODE of the error response; nil: the query is for the program
        def fault(query)
          return :BADVERS if query.message.edns&.version&.positive?
          return :REFUSED if query.question.klass != Codes::IN
          return nil if query.type == :ANY || !Codes::META.include?(query.type)

          TRANSFERS.include?(query.type) ? :REFUSED : :NOTIMP
        end
      end
    end
  end
end
