# frozen_string_literal: true

require_relative "support/dns_case"

# A zone's records: aliases, wildcards, names that exist without records, mistakes.
class DNSZoneTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def zone(name = "zone.test") = DNS::Zone.new(name, primary: "ns.zone.test", contact: "dns.zone.test")

  # @return [Array, nil] RCODE, and the records of the answer; nil when the zone says nothing
  def look_up(zone, name, type)
    query = DNS::Query.new(DNS::Message.query(name, type), nil, nil)
    zone.answer(query) && [query.response.rcode, query.response.answers.map { |one| "#{one.name} #{one.data}" }]
  end

  def test_aliases_are_followed_inside_the_zone
    zone = self.zone.add("a", :CNAME, "B.zone.test").add("b", :CNAME, "c.zone.test").add("c", :A, "192.0.2.1")
    zone.add("out", :CNAME, "elsewhere.test").add("loop", :CNAME, "loop.zone.test").add("gone", :CNAME, "x.zone.test")

    assert_equal [:NOERROR, ["a.zone.test B.zone.test.", "b.zone.test c.zone.test.", "c.zone.test 192.0.2.1"]],
                 look_up(zone, "a.zone.test", :A)
    assert_equal [:NOERROR, ["a.zone.test B.zone.test."]], look_up(zone, "a.zone.test", :CNAME)
    assert_equal [:NOERROR, ["out.zone.test elsewhere.test."]], look_up(zone, "out.zone.test", :A)
    assert_equal DNS::Zone::MAX_ALIASES, look_up(zone, "loop.zone.test", :A).last.size
    assert_equal [:NXDOMAIN, ["gone.zone.test x.zone.test."]], look_up(zone, "gone.zone.test", :A)
  end

  def test_a_wildcard_stands_for_names_that_do_not_exist
    zone = self.zone.add("*.dyn", :A, "192.0.2.1").add("host.dyn", :TXT, "here").add("x.y.dyn", :A, "192.0.2.2")

    assert_equal [:NOERROR, ["any.dyn.zone.test 192.0.2.1"]], look_up(zone, "any.dyn.zone.test", :A)
    assert_equal [:NOERROR, ["a.b.dyn.zone.test 192.0.2.1"]], look_up(zone, "a.b.dyn.zone.test", :A)
    assert_equal [:NOERROR, []], look_up(zone, "any.dyn.zone.test", :MX)
    assert_equal [:NOERROR, []], look_up(zone, "host.dyn.zone.test", :A)
    assert_equal [:NXDOMAIN, []], look_up(zone, "z.y.dyn.zone.test", :A), "y exists, so the wildcard is not above z"
  end

  def test_a_name_with_names_below_it_exists
    zone = self.zone.add("a.b.c", :A, "192.0.2.1")

    %w[b.c.zone.test c.zone.test].each { |name| assert_equal [:NOERROR, []], look_up(zone, name, :A) }
    assert_equal [:NXDOMAIN, []], look_up(zone, "d.zone.test", :A)
  end

  def test_names_outside_are_left_alone
    zone = self.zone

    ["test", "other.test", "xzone.test", 'a\\.zone.test'].each { |name| assert_nil look_up(zone, name, :A), name }
    assert_equal :NXDOMAIN, look_up(zone, 'a\\\\.zone.test', :A).first
  end

  def test_the_root_can_be_a_zone
    zone = self.zone("").add("com", :A, "192.0.2.1").add("*", :TXT, "any")

    assert_equal [:NOERROR, ["com 192.0.2.1"]], look_up(zone, "com", :A)
    assert_equal [:NOERROR, ["a.b.org \"any\""]], look_up(zone, "a.b.org", :TXT)
    assert_equal :NOERROR, look_up(zone, "", :SOA).first
  end

  def test_mistakes_are_named
    zone = self.zone.add("www", :A, "192.0.2.1").add("alias", :CNAME, "www.zone.test")

    mistakes = {
      ["www", :CNAME, "x.test"] => /has a CNAME record and others/, ["alias", :A, "192.0.2.2"] => /has a CNAME record/,
      ["alias", :CNAME, "y.test"] => /has a CNAME record/, ["www.other.test.", :A, "192.0.2.1"] => /is not in the zone/,
      ["www", :MX, "mail"] => /is not data for a record of type MX: it has preference, exchange/,
      ["www", :XA, "x"] => /"XA" is not a DNS record type/, ["www", :A, "1.2.3"] => /is not an IPv4 address/,
      ["www", :A, 7] => /7 is not data for the A record/, ["www", :AAAA, "192.0.2.1"] => /is not an IPv6 address/,
      ["www", :TXT, nil] => /nil is not data for a record of type TXT/, ["www", :TXT] => /no data for "www" TXT/
    }
    mistakes.each do |arguments, message|
      assert_match message, assert_raises(ArgumentError) { zone.add(*arguments) }.message
    end
    assert_raises(ArgumentError) { zone.add("new", :A, "1.2.3") }
    assert_equal :NXDOMAIN, look_up(zone, "new.zone.test", :A).first, "a rejected record leaves no name behind"
  end
end
