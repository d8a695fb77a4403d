# frozen_string_literal: true

require_relative "query"
require_relative "rules/transaction"

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
          # @param transaction [Transaction]
          # @return [Object, nil] what the pattern has found
          def match(transaction)
            return nil if types && !types.include?(transaction.type)

            case pattern
            when String then pattern if pattern == transaction.name
            when Regexp then pattern.match(transaction.name)
            else pattern.call(transaction.name, transaction.type) || nil
            end
          end

          def answer(transaction, found) = block.call(*[transaction, found].first(block_size))

          # A lambda or a method takes only what it names.
          def block_size = block.lambda? && block.arity >= 0 ? block.arity : 2
        end
        # The block of a rule throws it to leave the query to the next one.
        NEXT = Object.new.freeze
        private_constant :Rule, :NEXT

        def initialize(&)
          raise ArgumentError, "DNS::Rules.new needs a block: its rules" unless block_given?

          @rules = []
          @otherwise = nil
          instance_eval(&)
        end

        # @param pattern [String, Regexp, #call] of the name, which is in lower case and without the final dot; `call`
        #   gets name and type
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

        # In a rule's block: this rule is not the one, the next one that matches answers.
        def next! = throw(NEXT)

        # @param query [Query]
        def call(query) = process(Transaction.new(self, query))

        # @api private
        # @param transaction [Transaction]
        # @return [void]
        def process(transaction)
          @rules.any? { |rule| answer_by(rule, transaction) } || @otherwise&.call(transaction)
        end

        # @return [Proc] for {Server.new} and {DNS.serve}
        def to_proc = method(:call).to_proc

        # @api private
        # @return [Symbol]
        def self.type(type)
          Codes.type_name(type.is_a?(Module) ? type::TypeValue : Codes.type_number(type.to_sym))
        end

        private

        # @return [Boolean] has the rule answered, and not left the query to the next one?
        def answer_by(rule, transaction)
          found = rule.match(transaction) or return false
          catch(NEXT) do
            rule.answer(transaction, found)
            return true
          end
          false
        end
      end
    end
  end
end
