# frozen_string_literal: true

require_relative "message_writer"
require_relative "name"
require_relative "question"
require_relative "record"

module Heddle
  module Net
    module DNS
      # Records that a {Server} is the authority for. It answers with the flag AA and, where there is nothing, with the
      # SOA record (RFC 2308); it follows aliases inside the zone, and knows wildcards (RFC 4592). It has no delegations
      # and no DNSSEC: for those take a name server such as NSD or Knot.
      #
      #     zone = Heddle::Net::DNS::Zone.new("example.org", primary: "ns1.example.org", contact: "dns.example.org")
      #     zone.add("@", :MX, [10, "mail.example.org"])
      #     zone.add("www", :A, "192.0.2.1", "192.0.2.2", ttl: 60)
      #     Heddle::Net::DNS.serve("127.0.0.1:5353") { |query| zone.answer(query) }
      class Zone
        # Aliases followed inside the zone.
        MAX_ALIASES = 8

        # @return [String] in lower case, without the final dot
        attr_reader :name

        # @return [Record]
        attr_reader :soa

        # @param name [String]
        # @param primary [String] the name of the first name server
        # @param contact [String] the administrator's mail address, with a dot for the @
        # @param ttl [Integer] seconds, of records for which no other is given
        # @param serial [Integer] version of the zone
        # @param refresh [Integer] seconds; this and the next two are for secondary servers
        # @param retry [Integer] seconds
        # @param expire [Integer] seconds
        # @param minimum [Integer] seconds that others may keep that a name, or a type of it, does not exist
        def initialize(name, primary:, contact:, ttl: 300, serial: 1, refresh: 3_600, retry: 600, expire: 86_400,
                       minimum: 300)
          @name = Question.of(name, :SOA).name
          @ttl = ttl
          @records = {}
          add("@", :SOA, [primary, contact, serial, refresh, binding.local_variable_get(:retry), expire, minimum])
          @soa = @records[@name][:SOA].first
        end

        # Adds records.
        #
        # @param owner [String] inside the zone: "www", "*.dyn", "@" for the zone itself; or a full name with a final
        #   dot
        # @param type [Symbol]
        # @param data [Array<Object>] see {Data.from}
        # @param ttl [Integer, nil] seconds
        # @return [self]
        # @raise [ArgumentError] for a name outside of the zone, or data that is not of the type
        def add(owner, type, *data, ttl: nil)
          raise ArgumentError, "no data for #{owner.inspect} #{type}: give one argument for each record" if data.empty?

          owner = full_name(owner)
          made = data.map { |one| make_record(owner, type, ttl || @ttl, one) }
          check_alias(owner, @records.fetch(owner, {}), type, made)
          ((@records[owner] ||= {})[type] ||= []).concat(made)
          add_parents(owner)
          self
        end

        # @param query [Query]
        # @return [Query, nil] the query with an answer; nil when its name is not in this zone
        def answer(query)
          return nil unless Name.within?(query.name, @name)

          name = query.name
          MAX_ALIASES.times do
            sets = find(name) or return query.absent(soa: @soa)

            found = records_of(sets, query.type)
            return found ? give(query, name, found) : query.none(soa: @soa) unless aliased?(sets, query.type)

            give(query, name, sets[:CNAME])
            name = Question.of(sets[:CNAME].first.data.name, :CNAME).name
            return query unless Name.within?(name, @name)
          end
          query
        end

        private

        def full_name(owner)
          return @name if ["@", ""].include?(owner)

          full = Question.of(owner.end_with?(".") || @name.empty? ? owner : "#{owner}.#{@name}", :ANY).name
          return full if Name.within?(full, @name)

          raise ArgumentError, "#{owner.inspect} is not in the zone #{@name}: write \"www\", \"@\" or a full name of " \
                               "the zone with a final dot"
        end

        # A record that can't be written into a message is rejected here, and not at the first query for it.
        def make_record(owner, type, ttl, data)
          record = Record.of(owner, type, ttl, data)
          record.write(MessageWriter.new)
          record
        rescue MalformedError, TypeError, NoMethodError => e
          raise ArgumentError, "#{data.inspect} is not data for the #{type} record of #{owner}: #{e.message}"
        end

        # RFC 1034, section 3.6.2.
        def check_alias(owner, sets, type, made)
          others = sets.keys - [type]
          return unless type == :CNAME ? others.any? || (sets[:CNAME].to_a + made).size > 1 : sets.key?(:CNAME)

          raise ArgumentError, "#{owner} has a CNAME record and others: an alias has no other record"
        end

        # A name with names below it exists, even if it has no records (RFC 8020).
        def add_parents(owner)
          until owner == @name
            owner = owner.partition(".").last
            @records[owner] ||= {}
          end
        end

        # @return [Hash, nil] the record sets of a name, its own or those of the wildcard that it falls under
        def find(name)
          return @records[name] if @records.key?(name)

          name = name.partition(".").last
          name = name.partition(".").last until @records.key?(name)
          @records[name.empty? ? "*" : "*.#{name}"]
        end

        def aliased?(sets, type) = sets.key?(:CNAME) && !%i[CNAME ANY].include?(type)

        # One set is enough for ANY (RFC 8482, section 4.1).
        def records_of(sets, type) = type == :ANY ? sets.each_value.first : sets[type]

        def give(query, name, records)
          records.each { |record| query.answer(record.data, ttl: record.ttl, type: record.type, name: name) }
          query
        end
      end
    end
  end
end
