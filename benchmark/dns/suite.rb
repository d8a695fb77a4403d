# frozen_string_literal: true

require_relative "contestants"
require_relative "rows"
require_relative "handler"
require_relative "server"

module Bench
  # DNS servers under dnsperf.
  class DnsSuite < Suite
    def name = "dns"

    def title = "DNS servers"

    def rows = @rows ||= [DNS::Rows::Flat, DNS::Rows::Steady, DNS::Rows::Handler].flat_map(&:variants)

    def contestants
      @contestants ||= [DNS::RubyProgram.new("heddle", label: "Heddle", role: :heddle),
                        DNS::RubyProgram.new("rubydns", label: "RubyDNS", role: :peer),
                        DNS::Dnsmasq.new("dnsmasq"), DNS::Unbound.new("unbound"), DNS::Nsd.new("nsd")]
    end

    # @param ruby_flags [Array<String>]
    # @return [Hash] :version; that it starts and answers
    # @raise [Child::Failed]
    def probe(contestant, ruby_flags:)
      version = contestant.version
      DNS::Server.run(contestant, ruby_flags:) { { version: } }
    rescue DNS::Contestant::Unavailable => e
      { failure: e.message }
    end

    def sample(row, contestant, size, ruby_flags:)
      DNS::Server.run(contestant, ruby_flags:) { |server| row.measure(server, size) }
    end
  end
end
