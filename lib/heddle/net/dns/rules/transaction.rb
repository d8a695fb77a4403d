# frozen_string_literal: true

require_relative "../codes"
require_relative "../query"
require_relative "../record"

module Heddle
  module Net
    module DNS
      class Rules
        # A query in RubyDNS's words. `append!` makes one for a further name, whose records join the same response.
        class Transaction
          CODES = { noerror: :NOERROR, formerr: :FORMERR, servfail: :SERVFAIL, nxdomain: :NXDOMAIN, notimp: :NOTIMP,
                    refused: :REFUSED, notauth: :NOTAUTH }.freeze
          SECTIONS = { answer: :answers, authority: :authorities, additional: :additionals }.freeze

          # @return [Query]
          attr_reader :query

          # @return [String] the name that the rules are applied to, in lower case, without the final dot
          attr_reader :name

          # @return [Symbol] the type that the rules are applied to
          attr_reader :type

          # @param rules [Rules]
          # @param query [Query]
          # @param name [String]
          # @param type [Symbol]
          # @param section [Symbol] where its records go: `:answer`, `:authority` or `:additional`
          def initialize(rules, query, name = query.name, type = query.type, section = :answer)
            @rules = rules
            @query = query
            @name = name
            @type = type
            @section = section
          end

          # @return [Question]
          def question = @query.question

          # @return [Message] the response so far
          def response = @query.response

          # @return [Class, nil] Ruby's `Resolv::DNS::Resource::IN::A` of the type; nil where Ruby has none
          def resource_class
            require "resolv"
            found = Resolv::DNS::Resource.get_class(Codes.type_number(@type), Codes::IN)
            found unless found < Resolv::DNS::Resource::Generic
          end

          # @return [Hash{Symbol => Object}] `:peer` and `:remote_address`: the client's address
          def options = { peer: @query.client, remote_address: Addrinfo.ip(@query.client) }

          # @param key [Symbol] of {#options}
          def [](key) = options[key]

          # Adds one record.
          #
          # @param data [Array<Object>] its parts: an address; a preference and a name
          # @param ttl [Integer] seconds
          # @param name [String]
          # @param resource_class [Symbol, Class] its type, where it is not the one asked for
          # @param section [Symbol] `:answer`, `:authority` or `:additional`
          def respond!(*data, ttl: Query::TTL, name: @name, resource_class: @type, section: @section)
            parts = data.map { |part| part.is_a?(Numeric) ? part : part.to_s }
            put(parts.size == 1 ? parts.first : parts, Rules.type(resource_class), ttl:, name:, section:)
          end

          # Adds records of Ruby's resolv.
          #
          # @param resources [Array<Resolv::DNS::Resource>]
          # @param (see #respond!)
          def add(resources, ttl: Query::TTL, name: @name, section: @section)
            resources.each do |resource|
              type = Rules.type(resource.class)
              put(data_of(resource, type), type, ttl:, name: name.to_s, section:)
            end
          end

          # Applies the rules to a further name; their answers join the response.
          #
          # @param name [String, Question]
          # @param resource_class [Symbol, Class, nil] nil: the type of this transaction
          # @param section [Symbol] `:answer`, `:authority` or `:additional`
          def append!(name, resource_class = nil, section: @section)
            name = name.is_a?(Question) ? name.name : name.to_s.downcase.delete_suffix(".")
            @rules.process(Transaction.new(@rules, @query, name, Rules.type(resource_class || @type), section))
          end

          # @param upstream [Client, Resolver]
          def passthrough!(upstream) = @query.forward(upstream)

          # @param rcode [Symbol, Integer] `:NXDomain`, or 3
          # @raise [ArgumentError] for a code that there is not
          def fail!(rcode)
            code = rcode.is_a?(Integer) ? Codes.rcode_name(rcode) : CODES[rcode.to_s.downcase.to_sym]
            @query.fail(code || rcode)
          end

          def to_s = "#{@name} #{@type}"

          private

          # Both sides know the data in the form that it has in a message.
          def data_of(resource, type)
            bytes = Resolv::DNS::Message::MessageEncoder.new { |message| resource.encode_rdata(message) }.to_s
            Data.read(type, MessageReader.new(bytes, 0), bytes.bytesize)
          end

          def put(data, type, ttl:, name:, section:)
            section = SECTIONS.fetch(section.to_sym) do
              raise ArgumentError, "#{section.inspect} is not a section (known: #{SECTIONS.keys.join(", ")})"
            end
            return @query.answer(data, ttl:, name:, type:) if section == :answers

            @query.add(section, Record.of(name, type, ttl, data))
          end
        end
      end
    end
  end
end
