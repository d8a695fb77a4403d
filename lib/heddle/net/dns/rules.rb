# frozen_string_literal: true

require_relative "query"

module Heddle
  module Net
    module DNS
      # The program of a {Server} as a list of rules, in RubyDNS's words, so that its files can be ported.
      #
      #     rules = Heddle::Net::DNS::Rules.new do
      #       match("www.example.org", :A) { |transaction| transaction.respond!("192.0.2.1", ttl: 60) }
      #       match(/\A(.+)\.wiki\z/, :TXT) { |transaction, found| transaction.respond!(summary(found[1])) }
      #       otherwise { |transaction| transaction.passthrough!(upstream) }
      #     end
      #     Heddle::Net::DNS.serve("127.0.0.1:5353", &rules)
      #
      # The first rule that matches answers. Without one, and without `otherwise`, the query is refused.
      class Rules
        Rule = Struct.new(:pattern, :types, :block) do
          # @return [Object, nil] what the pattern has found
          def match(query)
            return nil if types && !types.include?(query.type)

            case pattern
            when String then pattern if pattern == query.name
            when Regexp then pattern.match(query.name)
            else pattern.call(query.name, query.type) || nil
            end
          end
        end
        private_constant :Rule

        def initialize(&)
          raise ArgumentError, "DNS::Rules.new needs a block: its rules" unless block_given?

          @rules = []
          @otherwise = nil
          instance_eval(&)
        end

        # @param pattern [String, Regexp, #call] of the name, which is in lower case and without the final dot; what is
        #   called gets name and type
        # @param types [Symbol, Class, Array, nil] types of records: `:A`, or Ruby's `Resolv::DNS::Resource::IN::A`;
        #   nil: all
        # @yield [transaction, found] {Transaction}, and for a Regexp its MatchData
        def match(pattern, types = nil, &block)
          raise ArgumentError, "match needs a block: what to answer" unless block

          pattern = pattern.downcase.delete_suffix(".") if pattern.is_a?(String)
          @rules << Rule.new(pattern, types && Array(types).map { |type| Rules.type(type) }, block)
        end

        # The block that answers when no rule matches.
        # @yield [transaction]
        def otherwise(&block)
          @otherwise = block
        end

        # @param query [Query]
        def call(query)
          transaction = Transaction.new(query)
          @rules.each do |rule|
            found = rule.match(query)
            return rule.block.call(*[transaction, found].first(block_size(rule.block))) if found
          end
          @otherwise&.call(transaction)
        end

        # @return [Proc] for {Server.new} and {DNS.serve}
        def to_proc = method(:call).to_proc

        # @api private
        # @return [Symbol]
        def self.type(type)
          Codes.type_name(type.is_a?(Module) ? type::TypeValue : Codes.type_number(type.to_sym))
        end

        private

        # A lambda or a method takes only what it names.
        def block_size(block) = block.lambda? && block.arity >= 0 ? block.arity : 2

        # A query in RubyDNS's words.
        class Transaction
          CODES = { noerror: :NOERROR, formerr: :FORMERR, servfail: :SERVFAIL, nxdomain: :NXDOMAIN, notimp: :NOTIMP,
                    refused: :REFUSED, notauth: :NOTAUTH }.freeze

          # @return [Query]
          attr_reader :query

          def initialize(query)
            @query = query
          end

          # @return [String]
          def name = @query.name

          # @return [Question]
          def question = @query.question

          # Adds one record to the answer.
          #
          # @param data [Array<Object>] its parts: an address; a preference and a name
          # @param ttl [Integer] seconds
          # @param name [String]
          # @param resource_class [Symbol, Class] its type, where it is not the one asked for
          def respond!(*data, ttl: Query::TTL, name: @query.name, resource_class: @query.type)
            parts = data.map { |part| part.is_a?(Numeric) ? part : part.to_s }
            @query.answer(parts.size == 1 ? parts.first : parts, ttl:, name:, type: Rules.type(resource_class))
          end

          # @param upstream [Client, Resolver]
          def passthrough!(upstream) = @query.forward(upstream)

          # @param rcode [Symbol, Integer] `:NXDomain`, or 3
          # @raise [ArgumentError] for a code that there is not
          def fail!(rcode)
            code = rcode.is_a?(Integer) ? Codes.rcode_name(rcode) : CODES[rcode.to_s.downcase.to_sym]
            @query.fail(code || rcode)
          end
        end
      end
    end
  end
end
