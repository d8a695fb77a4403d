# frozen_string_literal: true

require_relative "../networks"
require_relative "../resolver"

module Heddle
  module Net
    module DNS
      # One query to a {Server}, and the response to it. The server's block adds records to the response, which is sent
      # when the block returns. If the block adds nothing, the response is REFUSED.
      #
      #     case query
      #     in { name: /\A(.+)\.wiki\z/, type: :TXT } then query.answer(summary($1), ttl: 3600)
      #     in { name: "www.example.org", type: :A } if query.from?("private") then query.answer("10.0.0.7")
      #     else query.forward(resolver)
      #     end
      class Query
        # The default TTL of answers, in seconds.
        TTL = 300
        # {#forward} answers ANY queries with this record (RFC 8482, section 4.2).
        ANY_ANSWER = Data::HINFO.new("RFC8482", "").freeze
        ANY_TTL = 3_600

        RESPONSE = Message::FLAGS[:response]
        AUTHORITATIVE = Message::FLAGS[:authoritative]
        # Flags of a query that the response repeats (RFC 1035, section 4.1.1, and RFC 4035, section 3.2.2).
        REPEATED = Message::FLAGS[:recursion_desired] | Message::FLAGS[:checking_disabled]

        # @return [Message] the query as received
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

        # @return [String] the requested name, in lower case, without the final dot
        def name = @question.name

        # @return [Symbol] the requested type, such as `:AAAA`
        def type = @question.type

        # @return [String] the client's IP address
        def client = @source.address

        # @api private
        # @return [String] identifies the client; equal for all addresses that one client may have
        def source_key = @server.source_key(@source.address_bytes)

        # @return [Symbol] `:udp` or `:tcp`
        def transport = @source.transport

        # @return [Boolean] whether the client asks for recursion, in which the server asks other servers
        def recursion_desired? = @message.recursion_desired?

        # Is the client in one of these networks? For answers that depend on the client ("split horizon").
        #
        # @param networks [Networks, Array<String>, String] a set of networks, or arguments for {Networks.new}
        # @return [Boolean]
        def from?(networks)
          set = networks.is_a?(Networks) ? networks : @server.networks(Array(networks))
          set.cover?(@source.address_bytes)
        end

        # Supports pattern matching with name, type, client and transport.
        def deconstruct_keys(_keys) = { name: name, type: type, client: client, transport: transport }

        # Adds records to the answer section, and marks the response as authoritative.
        #
        # @param data [Array<Object>] the data of each record, see {Data.from}: `"192.0.2.1"` for A, `[10,
        #   "mail.example"]` for MX, a String of any length for TXT
        # @param ttl [Integer] seconds for which resolvers may cache the records
        # @param name [String] owner of the records, if it differs from the requested name, for example after a CNAME
        # @param type [Symbol] type of the records, if it differs from the requested type, such as `:CNAME`
        # @return [self]
        # @raise [ArgumentError] if the data does not fit the type
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

        # Responds that the name exists but has no record of the requested type (NODATA).
        #
        # @param soa [Record, nil] the zone's SOA record, which determines for how long resolvers may cache the response
        #   (RFC 2308)
        # @return [self]
        def none(soa: nil)
          negative(:NOERROR, soa)
        end

        # Responds that the name does not exist (NXDOMAIN).
        #
        # @param soa [Record, nil] see {#none}
        # @return [self]
        def absent(soa: nil)
          negative(:NXDOMAIN, soa)
        end

        # Asks another name server, and responds with that server's RCODE and records, with their remaining TTLs. If
        # `upstream` gets no answer, responds with SERVFAIL.
        #
        # Reserved names are not forwarded but get NXDOMAIN (RFC 6761: localhost, invalid; RFC 7686: onion). ANY queries
        # are not forwarded but get an HINFO record (RFC 8482).
        #
        # Clients outside of `allow` get REFUSED, because an open forwarder can be used to amplify attacks. Queries that
        # don't ask for recursion get REFUSED, too.
        #
        # @param upstream [#lookup] a {Client} or a {Resolver}. Both cache answers, and share one query between equal
        #   questions
        # @param allow [Networks, Array<String>, nil] networks whose queries are forwarded; nil: the server's option
        #   `allow`, by default loopback and private networks
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

        # Responds with REFUSED: the server does not answer this client or this question.
        # @return [self]
        def refuse = self.fail(:REFUSED)

        # Responds with an RCODE and no records.
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
        # @param rcode [Symbol, nil] sent in place of the program's answer
        def respond(rcode = nil)
          return if @sent

          @sent = true
          self.fail(rcode) if rcode
          keep_one_set if type == :ANY
          @source.respond(@response)
        rescue StandardError # the response could not be encoded, so nothing was sent
          @sent = false
          raise
        end

        # @api private
        # Sends a truncated response without records, so that the client asks again over TCP.
        def redirect_to_tcp
          self.fail(:NOERROR)
          @response.flags |= Message::FLAGS[:truncated]
          respond
        end

        # @api private
        # @return [Boolean] whether the response was sent
        def sent? = @sent

        # @api private
        # @return [Boolean] whether the program has added to the response
        def answered? = @answered

        private

        def negative(rcode, soa)
          @response.rcode = rcode
          @response.authoritative = true
          @answered = true
          return self unless soa

          # RFC 2308, section 3: the TTL is the smaller one of the SOA record's own TTL and its field `minimum`.
          @response.authorities << soa.with(ttl: [soa.ttl, soa.data.minimum].min)
          self
        end

        # Keeps only the first set of records in the response to an ANY query (RFC 8482, section 4.1).
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

        # Gives the record the question's name if the two differ at most in letter case. The record's name is then
        # written as a pointer to the question, and so in the letter case that the client has used. The other name
        # server may have used another case.
        def in_case(record) = record.name.casecmp?(name) ? record.with(name: name) : record

        # The response has an OPT record if the query has one (RFC 6891, section 6.1.1). The OPT record of the response
        # has no options, because the server supports none.
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
