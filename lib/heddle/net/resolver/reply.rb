# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # A name server's reply to one question. It is not trusted: records that don't answer the question are ignored,
      # and the size of the message limits the work.
      #
      # @api private
      class Reply
        RESPONSE = 0x8000
        OPCODE = 0x7800
        TRUNCATED = 0x0200
        RCODE = 0x000f
        ANSWERED = %i[NOERROR NXDOMAIN].freeze

        # Maximum TTL in seconds: one day.
        MAX_TTL = 86_400

        # @param bytes [String]
        # @param query [Query]
        # @return [Reply, nil] nil: the message does not answer the query
        def self.read(bytes, query)
          return nil if bytes.bytesize < DNS::Message::HEADER_SIZE

          id, flags, *counts = bytes.unpack("n6")
          return nil unless id == query.id && flags.anybits?(RESPONSE) && flags.nobits?(OPCODE)

          # Records are read only from complete messages without an error. Other messages may end anywhere or have any
          # content.
          complete = flags.nobits?(TRUNCATED) && ANSWERED.include?(DNS::Codes.rcode_name(flags & RCODE))
          counts.fill(0, 1) unless complete
          counts = [counts.first, query.max_answers, 0, 0] if query.max_answers && counts[1] > query.max_answers
          reply = new(DNS::Message.read(bytes, id, flags, counts), query.question)
          reply if reply.answers_question?
        rescue DNS::MalformedError
          nil
        end

        # @return [DNS::Message] has no records if the server failed or the message is truncated
        attr_reader :message

        # @param question [DNS::Question]
        def initialize(message, question)
          @message = message
          @question = question
        end

        def truncated? = @message.flags.anybits?(TRUNCATED)

        # Did the server fail, so that another server should be asked?
        def failed? = !ANSWERED.include?(@message.rcode)

        # Does the server apparently not support EDNS (RFC 6891, section 7)?
        def edns_unknown? = %i[FORMERR NOTIMP].include?(@message.rcode)

        # @return [String] why the server failed
        def error = @message.rcode.to_s

        def answers_question?
          case @message.questions
          in [] then failed?
          in [{ name:, type:, klass: }] then [name, type, klass] == [@question.name, @question.type, @question.klass]
          else false
          end
        end

        # @return [FoundAddresses, nil] the addresses; nil: the server failed or the message is truncated
        def answer
          return if truncated? || failed?

          aliases = @message.aliases(@question.name)
          name = aliases.empty? ? @question.name : aliases.last.data.name
          found = @message.records(name, @question.type)
          ttl = [*aliases, *found].map(&:ttl).push(MAX_TTL).min
          found.empty? ? nothing(name, ttl) : FoundAddresses.new(addresses: addresses(found), ttl:)
        end

        private

        def addresses(records) = records.map { |record| record.data.address }.uniq.freeze

        def nothing(name, ttl)
          absent = @message.rcode == :NXDOMAIN
          negative = DNS::Cache.negative_ttl(@message)
          return FoundAddresses.new(ttl:, target: name) unless absent || negative || name.casecmp?(@question.name)

          FoundAddresses.new(ttl: [ttl, negative || 0].min, absent:)
        end
      end
    end
  end
end
