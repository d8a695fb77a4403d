# frozen_string_literal: true

module Heddle
  module TestHelpers
    # The records of a domain, and answers with them: aliases are followed, negative answers have the SOA record.
    class Zone
      DNS = Heddle::Net::DNS

      attr_reader :soa

      def initialize(name, ttl: 300, minimum: 300)
        @name = name
        @ttl = ttl
        @records = {}
        add("@", :SOA, ["ns.#{name}", "dns.#{name}", 1, 3_600, 600, 86_400, minimum])
        @soa = @records[[name, :SOA]].first
      end

      # @param owner [String] below the zone; "@" for the zone itself
      def add(owner, type, *data, ttl: @ttl)
        owner = owner == "@" ? @name : "#{owner}.#{@name}"
        (@records[[owner, type]] ||= []).concat(data.map { |one| DNS::Record.of(owner, type, ttl, one) })
        self
      end

      # @return [DNS::Query, nil] nil: the name is not in this zone
      def answer(query)
        return unless within?(query.name, @name)

        name = query.name
        while (found = @records[[name, :CNAME]]) && query.type != :CNAME
          give(query, name, found)
          name = DNS::Question.of(found.first.data.name, :CNAME).name
          return query unless within?(name, @name)
        end
        found = records_of(name, query.type)
        return give(query, name, found) if found

        @records.any? { |(owner, _), _| within?(owner, name) } ? query.none(soa:) : query.absent(soa:)
      end

      private

      def within?(name, zone) = zone.empty? || name == zone || name.end_with?(".#{zone}")

      # One set is enough for ANY (RFC 8482, section 4.1).
      def records_of(name, type)
        type == :ANY ? @records.find { |(owner, _), _| owner == name }&.last : @records[[name, type]]
      end

      def give(query, name, records)
        records.each { |record| query.answer(record.data, ttl: record.ttl, type: record.type, name:) }
        query
      end
    end
  end
end
