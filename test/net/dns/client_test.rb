# frozen_string_literal: true

require_relative "support/dns_case"
require_relative "support/zone"
require "net/support/resolver_case"

# Questions to name servers: records of any type, EDNS and without, TCP, the cache.
class DNSClientTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase
  include Heddle::TestHelpers::DNSCase

  IN = Resolv::DNS::Resource::IN

  def zone
    Heddle::TestHelpers::Zone.new("up.test", ttl: 60, minimum: 30).tap do |zone|
      zone.add("@", :MX, [10, "mail.up.test"], [20, "other.test"]).add("www", :A, "192.0.2.1")
      zone.add("alias", :CNAME, "www.up.test").add("out", :CNAME, "www.elsewhere.test")
      zone.add("long", :TXT, "y" * 3_000)
    end
  end

  # @yieldparam [DNS::Client] client
  # @yieldparam [Array] asked questions that reached the server: name, type, transport
  def upstream(program = nil, **options)
    asked = []
    zone = self.zone
    counted = lambda do |query|
      asked << [query.name, query.type, query.transport]
      program ? program.call(query) : zone.answer(query)
    end
    serving(counted) { |dns| yield DNS::Client.new("127.0.0.1:#{dns.port}", **options), asked, dns }
  end

  def test_records_of_a_type_with_their_ttl
    upstream do |client, _|
      records = client.records("UP.test", :MX)

      assert_equal [[10, "mail.up.test"], [20, "other.test"]], records.map { |one| one.data.deconstruct }
      assert_equal [60], records.map(&:ttl).uniq
      assert_empty client.records("www.up.test", :MX)
      assert_empty client.records("none.up.test", :A)
    end
  end

  def test_aliases_are_followed_inside_a_message_and_over_several
    program = lambda do |query|
      query.name == "www.elsewhere.test" ? query.answer("192.0.2.7") : zone.answer(query)
    end
    upstream(program) do |client, asked|
      assert_equal %w[192.0.2.1], client.records("alias.up.test", :A).map { |one| one.data.address }
      assert_equal 1, asked.size
      assert_equal %w[192.0.2.7], client.records("out.up.test", :A).map { |one| one.data.address }
      assert_equal %w[out.up.test www.elsewhere.test], asked.drop(1).map(&:first)
    end
  end

  def test_records_of_an_alias_itself_are_found
    upstream do |client, _|
      assert_equal %w[www.up.test], client.records("alias.up.test", :CNAME).map { |one| one.data.name }
    end
  end

  def test_a_child_process_asks_over_a_connection_of_its_own
    upstream(cache_size: 0) do |client, asked|
      client.records("long.up.test", :TXT)
      from_child, to_parent = IO.pipe
      child = fork do
        to_parent.write(client.records("long.up.test", :TXT).size)
      ensure
        exit!(0)
      end
      Process.wait(child)
      to_parent.close

      assert_equal ["1", 1], [from_child.read, client.connections]
      assert_equal 2, asked.count { |_, _, transport| transport == :tcp }
    end
  end

  def test_aliases_in_a_circle_end
    program = ->(query) { query.answer(query.name == "a.test" ? "b.test" : "a.test", type: :CNAME) }
    upstream(program) { |client, _| assert_empty client.records("a.test", :A) }
  end

  def test_a_question_is_asked_once_while_its_answer_lives
    clock = Clock.new
    upstream(nil, clock:) do |client, asked|
      2.times { assert_equal 60, client.records("www.up.test", :A).first.ttl }
      clock.now += 59.5

      assert_equal 1, client.records("WWW.up.test", :A).first.ttl
      assert_equal 1, asked.size
      clock.now += 1

      assert_equal 60, client.records("www.up.test", :A).first.ttl
      assert_equal 2, asked.size
    end
  end

  def test_an_absent_name_is_kept_for_as_long_as_the_soa_says
    clock = Clock.new
    upstream(nil, clock:) do |client, asked|
      2.times { assert_empty client.records("none.up.test", :A) }
      clock.now += 29
      client.records("none.up.test", :A)

      assert_equal 1, asked.size
      clock.now += 2
      client.records("none.up.test", :A)

      assert_equal 2, asked.size
    end
  end

  def test_a_failure_is_kept_for_a_second
    clock = Clock.new
    upstream(->(query) { query.fail(:SERVFAIL) }, clock:, attempts: 1) do |client, asked|
      2.times { assert_raises(Socket::ResolutionError) { client.records("a.test", :A) } }

      assert_equal 1, asked.size
      clock.now += 1.5
      assert_raises(Socket::ResolutionError) { client.records("a.test", :A) }

      assert_equal 2, asked.size
    end
  end

  def test_an_extended_code_is_a_failure_and_not_an_empty_answer
    upstream(->(query) { query.fail(:BADVERS) }, attempts: 1) do |client, _|
      error = assert_raises(Socket::ResolutionError) { client.records("a.test", :A) }

      assert_match(/BADVERS/, error.message)
    end
  end

  def test_tasks_that_ask_the_same_share_one_question
    gate = Thread::Queue.new
    upstream(->(query) { query.answer(gate.pop) }) do |client, asked|
      Heddle.run do
        tasks = Array.new(20) { Heddle.async { client.records("a.test", :A).first.data.address } }
        Heddle.async { gate.push("192.0.2.1") }

        assert_equal ["192.0.2.1"], tasks.map(&:value).uniq
      end
      assert_equal 1, asked.size
    end
  end

  def test_a_cut_off_answer_is_fetched_by_tcp_and_the_connection_kept_for_a_burst
    texts = ->(query) { query.answer(query.name * 200, type: :TXT) }
    upstream(texts) do |client, asked, dns|
      Array.new(5) do |number|
        assert_equal "n#{number}.test" * 200, client.records("n#{number}.test", :TXT).first.data.text
      end

      assert_equal %i[udp tcp] * 5, asked.map(&:last)
      assert_equal 1, client.connections
      assert_equal 1, dns.server.tcp_accepted
    end
  end

  def test_a_kept_connection_that_the_server_has_closed_is_replaced
    texts = ->(query) { query.answer(query.name * 200, type: :TXT) }
    serving(texts, tcp_idle: 1) do |dns|
      client = DNS::Client.new("127.0.0.1:#{dns.port}")

      assert_equal 1, client.records("one.test", :TXT).size
      wait_until("the server to close") { dns.server.tcp_connections.zero? }

      assert_equal 1, client.records("two.test", :TXT).size
      assert_equal 2, dns.server.tcp_accepted
    end
  end

  def test_a_server_without_edns_is_asked_again_without
    old = name_server
    sizes = []
    old.on("web.test") do |query, *|
      sizes << query.additional.size
      next old.failure(query, 1) unless query.additional.empty?

      old.failure(query, 0).tap { |message| message.add_answer("web.test.", 60, IN::A.new("192.0.2.1")) }
    end

    assert_equal ["192.0.2.1"], DNS::Client.new("127.0.0.1:#{old.port}").records("web.test", :A).map { |one| one.data.to_s }
    assert_equal [1, 0], sizes
    assert_equal ["192.0.2.1"], resolver_for(old, no_aaaa: true).addresses("web.test")
    assert_equal [1, 0, 1, 0], sizes
  end

  def test_answers_to_other_questions_are_ignored
    server = name_server
    server.on("web.test") do |query, *|
      forged = server.failure(query, 0).tap { |message| message.add_answer("web.test.", 60, IN::A.new("203.0.113.66")) }
      others = [->(m) { m.id = (m.id + 1) & 0xffff }, ->(m) { m.qr = 0 }, ->(m) { m.opcode = 5 },
                ->(m) { m.question[0] = [m.question[0][0], IN::TXT] }].map do |change|
        Resolv::DNS::Message.decode(forged.encode).tap { |message| change.call(message) }
      end
      [*others, "", "x", Random.bytes(100),
       server.failure(query, 0).tap { |message| message.add_answer("web.test.", 60, IN::A.new("192.0.2.1")) }]
    end

    assert_equal ["192.0.2.1"], DNS::Client.new("127.0.0.1:#{server.port}").records("web.test", :A).map { |one| one.data.to_s }
  end

  def test_error_is_eai_again_and_names_the_servers_when_none_answers
    silent = name_server
    silent.on("web.test") { nil }
    error = assert_raises(Socket::ResolutionError) do
      DNS::Client.new("127.0.0.1:#{silent.port}", timeout: 0.02).records("web.test", :MX)
    end

    assert_equal Socket::EAI_AGAIN, error.error_code
    assert_match(/web\.test.*127\.0\.0\.1 port #{silent.port}: no response within 0\.02 s/, error.message)
  end

  def test_resolver_appends_its_search_list_when_it_looks_up_records
    upstream do |_, _, dns|
      resolver = Heddle::Net::Resolver.new(nameservers: [["127.0.0.1", dns.port]], search: %w[up.test])

      assert_equal %w[192.0.2.1], resolver.records("www", :A).map { |one| one.data.address }
      assert_empty resolver.records("localhost", :A)
    end
  end

  def test_options_without_name_servers_raise
    [{ timeout: 1 }, { attempts: 1, rotate: true }, { unknown: 1 }].each do |options|
      error = assert_raises(ArgumentError) { DNS::Client.new(**options) }

      assert_equal "#{options.keys.join(", ")}: allowed only together with name servers", error.message
    end
  end

  def test_lookup_shares_answers_between_spellings_of_a_name
    upstream do |client, asked|
      names = %w[www.up.test WWW.up.test. www.UP.test]
      found = names.flat_map { |name| client.lookup(name, :A).answers.map { |one| one.data.address } }

      assert_equal ["192.0.2.1"] * 3, found
      assert_equal [["www.up.test", :A, :udp]], asked
    end
  end

  def test_options_with_a_wrong_value_raise
    { timeout: -1, attempts: 0 }.each do |name, wrong|
      [-> { DNS::Client.new("127.0.0.1", name => wrong) },
       -> { Heddle::Net::Resolver.new(nameservers: [["127.0.0.1", 53]], name => wrong) }].each do |make|
        assert_match(/\A#{name}: is #{wrong}, but must be /, assert_raises(ArgumentError, &make).message)
      end
    end
  end

  def test_an_invalid_question_raises_with_its_name
    client = DNS::Client.new("127.0.0.1")

    assert_match(/"MXX" is not a DNS record type/, assert_raises(ArgumentError) do
      client.records("a.test", :MXX)
    end.message)
    assert_match(/"a\.\.test" is not a domain name/, assert_raises(ArgumentError) do
      client.records("a..test", :A)
    end.message)
    assert_match(/"a\.\.test" is not a domain name/, assert_raises(ArgumentError) do
      client.lookup("a..test", :A)
    end.message)
    assert_match(/"ns.test" is not an IP address/, assert_raises(ArgumentError) { DNS::Client.new("ns.test") }.message)
    %w[192.0.2.1:70000 192.0.2.1:0 [2001:db8::1]:65536].each do |address|
      assert_match(/the port of name server .* must be 1 to 65535, not \d+/,
                   assert_raises(ArgumentError, address) { DNS::Client.new(address) }.message)
    end
  end
end
