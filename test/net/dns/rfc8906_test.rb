# frozen_string_literal: true

require_relative "support/dns_case"
require_relative "support/zone"

# The list of RFC 8906, section 8, by dig.
class DNSRfc8906Test < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def self.zone
    Heddle::TestHelpers::Zone.new("zone.test").add("large", :TXT, "x" * 2_000)
  end

  SOA = /^zone\.test\.\s+\d+\s+IN\s+SOA\s/
  AA = /^;; flags:[^;]*\baa\b/
  MBZ = /MBZ/
  OPT = /EDNS: version: 0, flags:/
  OPTION_100 = /OPT=100/
  NOERROR = /status: NOERROR/
  BADVERS = /status: BADVERS/
  BASIC = [NOERROR, SOA, AA].freeze
  EXTENDED = [NOERROR, SOA, AA, OPT].freeze

  # Arguments of dig, what its output has, and what it has not.
  LIST = {
    "8.1.1 configured for the zone" => ["+noedns +noad +norec soa zone.test", BASIC, [OPT]],
    "8.1.2 unknown types" => ["+noedns +noad +norec type1000 zone.test", [NOERROR, AA, /ANSWER: 0/], []],
    "8.1.3.1 CD=1" => ["+noedns +noad +norec +cd soa zone.test", BASIC, []],
    "8.1.3.2 AD=1" => ["+noedns +norec +ad soa zone.test", BASIC, [/^;; flags:[^;]*\bad\b/]],
    "8.1.3.3 reserved bit" => ["+noedns +noad +norec +zflag soa zone.test", BASIC, [MBZ]],
    "8.1.4 unknown opcodes" => ["+noedns +noad +opcode=15 +norec +header-only", [/status: NOTIMP/], [SOA, AA]],
    "8.1.5 TCP" => ["+noedns +noad +norec +tcp soa zone.test", BASIC, []],
    "8.2.1 minimal EDNS" => ["+nocookie +edns=0 +noad +norec soa zone.test", EXTENDED, []],
    "8.2.2 version negotiation" => ["+nocookie +edns=1 +noednsneg +noad +norec soa zone.test", [BADVERS, OPT],
                                    [SOA, AA]],
    "8.2.3 unknown options" => ["+nocookie +edns=0 +noad +norec +ednsopt=100 soa zone.test", EXTENDED, [OPTION_100]],
    "8.2.4 unknown flags" => ["+nocookie +edns=0 +noad +norec +ednsflags=0x40 soa zone.test", EXTENDED, [MBZ]],
    "8.2.5 version and flags" =>
      ["+nocookie +edns=1 +noednsneg +noad +norec +ednsflags=0x40 soa zone.test", [BADVERS, OPT], [SOA, AA, MBZ]],
    "8.2.6 version and options" =>
      ["+nocookie +edns=1 +noednsneg +noad +norec +ednsopt=100 soa zone.test", [BADVERS, OPT], [SOA, AA, OPTION_100]],
    "8.2.7 truncation and EDNS" =>
      ["+norec +dnssec +bufsize=512 +ignore txt large.zone.test", [NOERROR, AA, OPT, /flags:[^;]*\btc\b/, /QUERY: 1/],
       []],
    "8.2.8 DO=1" => ["+nocookie +edns=0 +noad +norec +dnssec soa zone.test", [*EXTENDED, /flags: do/], []],
    "8.2.9 version and DO=1" =>
      ["+nocookie +edns=1 +noednsneg +noad +norec +dnssec soa zone.test", [BADVERS, OPT, /flags: do/], [SOA, AA]],
    "8.2.10 several defined options" =>
      ["+edns=0 +noad +norec +cookie +nsid +expire +subnet=0.0.0.0/0 soa zone.test", EXTENDED, []]
  }.freeze

  LIST.each do |title, (arguments, there, absent)|
    define_method(:"test_#{title.downcase.gsub(/\W+/, "_")}") do
      zone = self.class.zone
      serving(->(query) { zone.answer(query) }) do |dns|
        output = dig(dns, *arguments.split)
        there.each { |pattern| assert_match pattern, output }
        absent.each { |pattern| refute_match pattern, output }
      end
    end
  end
end
