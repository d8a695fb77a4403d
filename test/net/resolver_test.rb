# frozen_string_literal: true

require "net/support/resolver_case"

# Names become addresses, in libc's order of sources.
class ResolverTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  def test_a_name_has_the_addresses_that_the_name_server_tells
    server = name_server
    server.host("web.example", "192.0.2.1", "192.0.2.2")

    assert_equal %w[192.0.2.1 192.0.2.2], resolver_for(server).addresses("web.example")
  end

  def test_the_case_of_a_name_and_a_final_dot_do_not_matter
    server = name_server
    server.host("web.example", "192.0.2.1")
    resolver = resolver_for(server)

    assert_equal ["192.0.2.1"], resolver.addresses("WEB.Example.")
    assert_equal ["192.0.2.1"], resolver.addresses("web.example")
    assert_equal 2, server.questions.size, "one A and one AAAA question for both spellings"
  end

  def test_both_families_are_asked_for_at_once_through_one_socket
    server = name_server
    server.host("web.example", "192.0.2.1", "2001:db8::1")
    server.hold(2) # answers neither question before it has both

    assert_equal %w[192.0.2.1 2001:db8::1], resolver_for(server).addresses("web.example")
    assert_equal %w[A AAAA], server.questions.map(&:type).sort
    assert_equal 1, server.questions.map(&:port).uniq.size
  end

  def test_every_lookup_has_a_source_port_of_its_own
    server = name_server
    resolver = resolver_for(server, no_aaaa: true)
    8.times { |number| resolver.addresses("host#{number}.example") }

    assert_operator server.questions.map(&:port).uniq.size, :>, 4
  end

  def test_ipv6_comes_first_where_there_is_a_route
    server = name_server
    server.host("web.example", "192.0.2.1", "2001:db8::1")
    resolver = Heddle::Net::Resolver.new(nameservers: [server.address], hosts: @hosts, reachable: ->(_) { true })

    assert_equal %w[2001:db8::1 192.0.2.1], resolver.addresses("web.example")
  end

  def test_a_name_that_does_not_exist_has_no_addresses
    assert_equal [], resolver_for(name_server).addresses("nobody.example")
  end

  def test_an_invalid_host_name_is_sent_to_no_server
    server = name_server
    resolver = resolver_for(server)

    ["", ".", "a..b", "#{"x" * 64}.example", (["x" * 60] * 5).join("."), "a b", "a\nb", "fe80%eth0"].each do |host|
      assert_equal [], resolver.addresses(host), host.inspect
    end

    assert_empty(server.questions.reject { |question| question.name == "fe80%eth0" })
  end

  def test_numeric_addresses_are_returned_without_a_query
    server = name_server
    resolver = resolver_for(server)

    assert_equal ["192.0.2.7"], resolver.addresses("192.0.2.7")
    assert_equal ["2001:db8::7"], resolver.addresses("2001:db8::7")
    assert_equal ["127.0.0.1"], resolver.addresses("127.1")
    assert_equal ["127.0.0.1"], resolver.addresses("0x7f000001")
    assert_equal [], resolver.addresses("300.0.0.1")
    assert_empty server.questions
  end

  def test_a_zone_stays_with_its_address
    loopback = Socket.getifaddrs.find { |interface| interface.addr&.ipv4_loopback? }.name

    assert_equal ["fe80::1%#{loopback}"], resolver_for(name_server).addresses("fe80::1%#{loopback}")
    assert_equal [], resolver_for(name_server).addresses("fe80::1%nosuchinterface")
  end

  def test_localhost_is_this_machine_without_a_question
    server = name_server
    server.host("app.localhost", "192.0.2.66")
    resolver = resolver_for(server)

    assert_equal ["127.0.0.1"], resolver.addresses("localhost"), "as the hosts file says"
    assert_equal %w[127.0.0.1 ::1], resolver.addresses("app.localhost")
    File.write(@hosts, "# nothing\n")

    assert_equal %w[127.0.0.1 ::1], resolver.addresses("localhost.")
    assert_empty server.questions
  end

  def test_names_reserved_for_other_uses_never_reach_a_name_server
    server = name_server

    %w[web.invalid invalid hidden.onion].each { |host| assert_equal [], resolver_for(server).addresses(host) }

    assert_empty server.questions
  end

  def test_the_search_list_goes_first_for_a_name_with_few_dots
    server = name_server
    server.host("db.two.example", "192.0.2.5")
    resolver = resolver_for(server, search: %w[one.example two.example])

    assert_equal ["192.0.2.5"], resolver.addresses("db")
    assert_equal %w[db.one.example db.two.example], server.questions.map(&:name).uniq
  end

  def test_a_name_with_enough_dots_is_asked_for_as_it_is_first
    server = name_server
    resolver = resolver_for(server, search: %w[one.example], ndots: 2)
    resolver.addresses("a.b.c")
    resolver.addresses("a.b")

    assert_equal %w[a.b.c a.b.c.one.example a.b.one.example a.b], server.questions.map(&:name).uniq
  end

  def test_a_final_dot_keeps_the_search_list_away
    server = name_server
    resolver_for(server, search: %w[one.example]).addresses("db.")

    assert_equal ["db"], server.questions.map(&:name).uniq
  end

  def test_aliases_lead_to_the_addresses_at_their_end
    server = name_server
    server.alias("www.example", "cdn.example")
    server.alias("cdn.example", "edge.example")
    server.host("edge.example", "192.0.2.9")

    assert_equal ["192.0.2.9"], resolver_for(server).addresses("www.example")
  end

  def test_an_alias_that_the_server_leaves_open_is_followed
    server = name_server(negative_ttl: nil)
    server.host("edge.example", "192.0.2.9")
    server.on("www.example") do |query, *|
      open_alias(server, query, "www.example", "edge.example")
    end

    assert_equal ["192.0.2.9"], resolver_for(server).addresses("www.example")
  end

  def test_eight_aliases_that_the_server_leaves_open_are_followed
    server = name_server(negative_ttl: nil)
    server.host("n8.example", "192.0.2.9")
    8.times do |i|
      names = ["n#{i}.example", "n#{i + 1}.example"]
      server.on(names.first) { |query, *| open_alias(server, query, *names) }
    end

    assert_equal ["192.0.2.9"], resolver_for(server).addresses("n0.example")
  end

  def test_aliases_that_go_in_a_circle_end
    server = name_server(negative_ttl: nil)
    server.on("a.example") { |query, *| open_alias(server, query, "a.example", "b.example") }
    server.on("b.example") { |query, *| open_alias(server, query, "b.example", "a.example") }

    assert_equal [], resolver_for(server).addresses("a.example")
    assert_operator server.questions.size, :<, 40
  end

  def test_a_server_that_is_not_an_address_is_refused
    error = assert_raises(ArgumentError) { Heddle::Net::Resolver.new(nameservers: [["dns.example", 53]]) }

    assert_match(/"dns\.example" is not an IP address/, error.message)
  end

  def test_options_without_name_servers_are_refused
    error = assert_raises(ArgumentError) { Heddle::Net::Resolver.new(search: %w[a.test], ndots: 2) }

    assert_equal "search, ndots: allowed only together with `nameservers`", error.message
  end

  def test_the_resolver_works_in_a_ractor
    server = name_server
    server.host("web.example", "192.0.2.1", "2001:db8::1")
    ractor = Ractor.new(server.port, @hosts) do |port, hosts|
      resolver = Heddle::Net::Resolver.new(nameservers: [["127.0.0.1", port]], hosts: hosts)
      [resolver.addresses("web.example"), resolver.addresses("nobody.example"), resolver.addresses("localhost"),
       Heddle::Net::Resolver.new(hosts: hosts).addresses("localhost")]
    end
    found, absent, here, there = ractor.respond_to?(:value) ? ractor.value : ractor.take

    assert_equal %w[192.0.2.1 2001:db8::1], found.sort
    assert_equal [], absent
    assert_equal [["127.0.0.1"], ["127.0.0.1"]], [here, there]
  end

  private

  def open_alias(server, query, name, target)
    message = server.failure(query, 0)
    message.add_answer("#{name}.", 60, Resolv::DNS::Resource::IN::CNAME.new(Resolv::DNS::Name.create("#{target}.")))
    message
  end
end
