# frozen_string_literal: true

require_relative "../networks"
require_relative "../resolver"

module Heddle
  module Net
    module DNS
      # One query to a {Server}, and the response to it. The block of the server gets it and adds to the response, which
      # is sent when the block has ended. A query to which nothing was added is answered with REFUSED.
      #
      #     case query
      #     in { name: /\A(.+)\.wiki\z/, type: :TXT } then query.answer(summary($1), ttl: 3600)
      #     in { name: "www.example.org", type: :A } if query.from?("private") then query.answer("10.0.0.7")
      #     else query.forward(resolver)
      #     end
      class Query
        # Seconds. The default TTL of answers.
        TTL = 300
        # The answer to a question for ANY if the program gives none (RFC 8482, section 4.2).
        ANY_ANSWER = Data::HINFO.new("RFC8482", "").freeze
        ANY_TTL = 3_600

        RESPONSE = Message::FLAGS[:response]
        AUTHORITATIVE = Message::FLAGS[:authoritative]
        # Flags that a response repeats (RFC 1035, section 4.1.1, and RFC 4035, section 3.2.2).
        REPEATED = Message::FLAGS[:recursion_desired] | Message::FLAGS[:checking_disabled]

        # @return [Message] as it came
        attr_reader :message

        # @return [Question]
        attr_reader :question

        # @return [Message] the response so far
        attr_reader :response

        # @api private
        def initialize(message, source, server)
          @message = message
          @question = message.question
          @source = source
          @server = server
          @answered = @sent = false
          @response = make_response
        end

        # @return [String] the name asked for, in lower case, without the final dot
        def name = @question.name

        # @return [Symbol] the type asked for, such as `:AAAA`
        def type = @question.type

        # @return [String] the client's IP address
        def client = @source.address

        # @api private
        # @return [String] identifies the client: all addresses that one client may have give the same key
        def source_key = @server.source_key(@source.address_bytes)

        # @return [Symbol] `:udp` or `:tcp`
        def transport = @source.transport

        # @return [Boolean] does the client want the server to ask others?
        def recursion_desired? = @message.recursion_desired?

        # Whether the client is in one of these networks: for answers that depend on it ("split horizon").
        #
        # @param networks [Networks, Array<String>, String] a set of networks, or what {Networks.new} takes
        # @return [Boolean]
        def from?(networks)
          set = networks.is_a?(Networks) ? networks : @server.networks(Array(networks))
          set.cover?(@source.address_bytes)
        end

        # For pattern matching: name, type, client, transport.
        def deconstruct_keys(_keys) = { name: name, type: type, client: client, transport: transport }

        # Adds records to the answer, and marks it as authoritative.
        #
        # @param data [Array<Object>] one for each record, see {Data.from}: `"192.0.2.1"` for A, `[10, "mail.example"]`
        #   for MX, a String of any length for TXT
        # @param ttl [Integer] seconds for which others may keep the records
        # @param name [String] owner of the records, if it is not the name of the question, as after a CNAME
        # @param type [Symbol] type of the records, if it is not the type of the question, such as `:CNAME`
        # @return [self]
        # @raise [ArgumentError] for data that is not of the type
        def answer(*data, ttl: TTL, name: self.name, type: self.type)
          answers = @response.answers
          data.each { |one| answers << Record.of(name, type, ttl, one) }
          @response.flags |= AUTHORITATIVE
          @answered = true
          self
        end

        # Adds a record to a section of the response.
        #
        # @param section [Symbol] `:answers`, `:authorities` or `:additionals`
        # @param record [Record]
        # @return [self]
        def add(section, record)
          @answered = true
          @response.public_send(section) << record
          self
        end

        # Answers that the name exists, but has no record of the type (NODATA).
        #
        # @param soa [Record, nil] of the zone: it says how long resolvers may keep the answer (RFC 2308)
        # @return [self]
        def none(soa: nil)
          negative(:NOERROR, soa)
        end

        # Answers that the name does not exist (NXDOMAIN).
        #
        # @param soa [Record, nil] of the zone: it says how long resolvers may keep the answer (RFC 2308)
        # @return [self]
        def absent(soa: nil)
          negative(:NXDOMAIN, soa)
        end

        # Responds with another name server's answer: the same flags, and records with the remaining TTLs.
        #
        # Names that no name server may be asked for (RFC 6761: localhost, invalid; RFC 7686: onion) do not exist.
        #
        # Clients outside of `allow` get REFUSED, and so do those that ask for no recursion: an open forwarder is an
        # amplifier for attacks on others.
        #
        # @param upstream [#lookup] a {Client} or a {Resolver}, which cache answers, and ask the same question only once
        #   at a time
        # @param allow [Networks, Array<String>, nil] networks whose queries are forwarded; nil: the networks of the
        #   server's option `allow`, by default loopback and private ones
        # @return [self]
        def forward(upstream, allow: nil)
          allowed = allow ? from?(allow) : @server.forward_for?(self)
          return refuse unless allowed && recursion_desired?

          @response.recursion_available = true
          return self.fail(:NXDOMAIN) if Resolver::Name.new(name, true).reserved?
          return answer(ANY_ANSWER, ttl: ANY_TTL, type: :HINFO) if type == :ANY

          relay(upstream.lookup(name, type, dnssec: @message.edns&.dnssec || false,
                                            checking_disabled: @message.checking_disabled?))
        rescue Resolver::ResolutionError
          self.fail(:SERVFAIL)
        end

        # Answers REFUSED: no answer for this client, or to this question.
        # @return [self]
        def refuse = self.fail(:REFUSED)

        # Answers with an RCODE and nothing else.
        #
        # @param rcode [Symbol] such as `:SERVFAIL`, see {Codes::RCODES}
        # @return [self]
        def fail(rcode)
          @response.rcode = rcode
          @response.clear
          @response.authoritative = false
          @answered = true
          self
        end

        # @api private
        # Sends the response. Later calls do nothing.
        # @param rcode [Symbol, nil] sent instead of the program's answer
        def respond(rcode = nil)
          return if @sent

          @sent = true
          self.fail(rcode) if rcode
          keep_one_set if type == :ANY
          @source.respond(@response)
        rescue MalformedError # nothing of it has been sent
          @sent = false
          raise
        end

        # @api private
        # Sends a response without records that makes the client ask again over TCP.
        def redirect_to_tcp
          self.fail(:NOERROR)
          @response.flags |= Message::FLAGS[:truncated]
          respond
        end

        # @api private
        # @return [Boolean] was {respond} called?
        def sent? = @sent

        # @api private
        # @return [Boolean] has the program added anything?
        def answered? = @answered

        private

        def negative(rcode, soa)
          @response.rcode = rcode
          @response.authoritative = true
          @answered = true
          return self unless soa

          # The record's own TTL counts, too (RFC 2308, section 3).
          @response.authorities << soa.with(ttl: [soa.ttl, soa.data.minimum].min)
          self
        end

        # RFC 8482, section 4.1.
        def keep_one_set
          first = @response.answers.first or return
          @response.answers.select! { |record| record.type == first.type && record.name == first.name }
        end

        def relay(message)
          @answered = true
          @response.rcode = message.rcode
          # Sets the flag AD only for clients that understand it (RFC 6840, section 5.7).
          @response.authentic = message.authentic? && (@message.authentic? || @message.edns&.dnssec)
          @response.answers.concat(message.answers.map { |record| in_case(record) })
          @response.authorities.concat(message.authorities)
          @response.additionals.concat(message.additionals)
          self
        end

        # Restores the case in which this client wrote the name, because the answer may have been made for another
        # client.
        def in_case(record) = record.name.casecmp?(name) ? record.with(name: name) : record

        # The response has an OPT record if the query has one (RFC 6891, section 6.1.1), without options, because the
        # server understands none.
        def make_response
          edns = @message.edns
          response = Message.new(@message.id, RESPONSE | (@message.flags & REPEATED))
          response.edns = EDNS.of(dnssec: edns.dnssec) if edns
          response.udp_limit = edns.size.clamp(EDNS::MIN_SIZE, EDNS::SIZE) if edns
          response.questions << @question
          response
        end
      end
    end
  end
end
