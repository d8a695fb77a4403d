# frozen_string_literal: true

require "net/support/resolver_case"
require "heddle/net/dns"

# Name servers that are slow, dead, sick or hostile.
class ResolverServersTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  # So many that on a busy machine, too, one answer comes in the time for it.
  ATTEMPTS = 200

  def setup
    super
    @server = name_server
    @server.host("web.example", "192.0.2.1")
  end

  def test_a_silent_server_is_passed_over_after_its_time
    silent = name_server
    silent.on("web.example") { nil }

    resolver = resolver_for(silent, @server, timeout: 0.05, attempts: ATTEMPTS)

    assert_equal ["192.0.2.1"], resolver.addresses("web.example")
    silent.wait_for_questions(2)

    assert_equal %w[A AAAA], silent.questions.map(&:type).uniq.sort
  end

  def test_a_server_that_is_not_there_is_passed_over_at_once
    resolver = Heddle::Net::Resolver.new(nameservers: [["127.0.0.1", dead_port], @server.address], timeout: 60)

    assert_equal ["192.0.2.1"], resolver.addresses("web.example")
  end

  def test_a_server_that_fails_is_passed_over_at_once
    [1, 2, 4, 5, 9].each do |code|
      sick = name_server
      sick.on("web.example") { |query, *| sick.failure(query, code) }

      assert_equal ["192.0.2.1"], resolver_for(sick, @server, timeout: 60).addresses("web.example"), "RCODE #{code}"
    end
  end

  def test_an_answer_lost_once_is_asked_for_again
    lost = 0
    @server.on("lossy.example") do |query, *|
      next if (lost += 1) == 1

      message = @server.failure(query, 0)
      message.add_answer("lossy.example.", 60, Resolv::DNS::Resource::IN::A.new("192.0.2.3"))
      message
    end

    resolver = resolver_for(@server, timeout: 0.05, attempts: ATTEMPTS, no_aaaa: true)

    assert_equal ["192.0.2.3"], resolver.addresses("lossy.example")
  end

  def test_a_server_that_drops_what_has_edns_is_asked_without
    old = name_server
    old.on("web.example") do |query, type, *|
      next if query.additional.any?

      old.failure(query, 0).tap do |message|
        message.add_answer("web.example.", 60, Resolv::DNS::Resource::IN::A.new("192.0.2.4")) if type == "A"
      end
    end

    assert_equal ["192.0.2.4"], resolver_for(old, timeout: 0.1, attempts: ATTEMPTS).addresses("web.example")
    client = Heddle::Net::DNS::Client.new("127.0.0.1:#{old.port}", timeout: 0.1, attempts: ATTEMPTS)
    assert_equal ["192.0.2.4"], client.records("web.example", :A).map { |record| record.data.address }
  end

  def test_when_no_server_answers_the_error_is_libcs_and_names_them
    silent = name_server
    silent.on("web.example") { nil }
    error = assert_raises(Socket::ResolutionError) do
      resolver_for(silent, timeout: 0.02).addresses("web.example")
    end

    assert_equal Socket::EAI_AGAIN, error.error_code
    assert_kind_of SocketError, error
    assert_match(/web\.example.*127\.0\.0\.1 port #{silent.port}: no response within 0\.02 s/, error.message)
    silent.wait_for_questions(4)

    assert_equal 4, silent.questions.size, "two tries, A and AAAA"
  end

  def test_attempts_and_timeout_bound_the_questions
    silent = name_server
    silent.on("web.example") { nil }
    assert_raises(Socket::ResolutionError) do
      resolver_for(silent, timeout: 0.02, attempts: 3, no_aaaa: true).addresses("web.example")
    end

    silent.wait_for_questions(3)

    assert_equal 3, silent.questions.size
  end

  def test_silence_ends_the_walk_through_the_search_list
    silent = name_server
    silent.on("web.one.example") { nil }
    assert_raises(Socket::ResolutionError) do
      resolver_for(silent, timeout: 0.02, search: %w[one.example two.example]).addresses("web")
    end

    assert_equal ["web.one.example"], silent.questions.map(&:name).uniq
  end

  def test_a_failure_for_one_candidate_does_not_hide_the_next
    @server.on("web.one.example") { |query, *| @server.failure(query, 2) }
    @server.host("web.two.example", "192.0.2.8")
    resolver = resolver_for(@server, search: %w[one.example two.example])

    assert_equal ["192.0.2.8"], resolver.addresses("web")
    assert_raises(Socket::ResolutionError) { resolver_for(@server, search: %w[one.example]).addresses("web") }
  end

  def test_records_of_any_type_are_searched_as_addresses_are
    @server.on("web.one.example") { |query, *| @server.failure(query, 2) }
    @server.host("web.two.example", "192.0.2.8")
    resolver = resolver_for(@server, search: %w[one.example two.example])

    assert_equal ["192.0.2.8"], resolver.records("web", :A).map { |record| record.data.address }
    assert_raises(Socket::ResolutionError) { resolver_for(@server, search: %w[one.example]).records("web", :A) }
  end

  def test_addresses_of_one_family_do_not_wait_for_tries_at_the_other
    @server.on("half.example") do |query, type, _|
      next if type == "AAAA"

      message = @server.failure(query, 0)
      message.add_answer("half.example.", 60, Resolv::DNS::Resource::IN::A.new("192.0.2.4"))
      message
    end

    assert_equal ["192.0.2.4"], resolver_for(@server, timeout: 1).addresses("half.example")
    assert_equal 2, @server.questions("half.example").size
  end

  def test_rotate_spreads_the_questions_over_the_servers
    servers = Array.new(2) { name_server }
    resolver = resolver_for(*servers, rotate: true, no_aaaa: true)
    40.times { |number| resolver.addresses("host#{number}.example") }

    assert_equal(40, servers.sum { |server| server.questions.size })
    assert(servers.all? { |server| server.questions.any? })
  end

  def test_a_cut_off_answer_is_fetched_by_tcp
    many = Array.new(100) { |number| "192.0.2.#{number + 1}" }
    @server.host("many.example", *many)
    @server.truncate("many.example")

    assert_equal many, resolver_for(@server).addresses("many.example")
    assert_equal %i[tcp tcp udp udp], @server.questions.map(&:transport).sort
  end

  def test_tcp_alone_when_use_vc_says_so
    assert_equal ["192.0.2.1"], resolver_for(@server, use_vc: true).addresses("web.example")
    assert_equal %i[tcp], @server.questions.map(&:transport).uniq
  end

  def test_a_server_that_closes_the_tcp_connection_is_passed_over
    broken = name_server
    broken.truncate("web.example")
    broken.on("web.example") do |query, _, transport|
      transport == :udp ? broken.failure(query, 0).tap { |message| message.tc = 1 } : nil
    end

    assert_equal ["192.0.2.1"], resolver_for(broken, @server, timeout: 60).addresses("web.example")
  end

  def test_answers_to_other_questions_are_ignored
    evil = Resolv::DNS::Name.create("evil.example.")
    @server.on("web.example") do |query, type, _|
      [
        forged(query) { |message| message.id = (message.id + 1) & 0xffff },
        forged(query) { |message| message.qr = 0 },
        forged(query) { |message| message.opcode = 5 },
        forged(query) { |message| message.question[0] = [evil, message.question[0][1]] },
        forged(query) { |message| message.question[0] = [message.question[0][0], Resolv::DNS::Resource::IN::TXT] },
        forged(query) { |message| message.question.clear },
        "", "x", "\xff" * 600, Random.bytes(200), @server.answer(query, "web.example", type)
      ]
    end

    assert_equal ["192.0.2.1"], resolver_for(@server).addresses("web.example")
  end

  def test_records_of_other_names_in_an_answer_are_ignored
    @server.on("web.example") do |query, *|
      message = @server.failure(query, 0)
      message.add_answer("other.example.", 60, Resolv::DNS::Resource::IN::A.new("203.0.113.66"))
      message.add_answer("web.example.", 60, Resolv::DNS::Resource::IN::A.new("192.0.2.2"))
      message.add_additional("web.example.", 60, Resolv::DNS::Resource::IN::A.new("203.0.113.67"))
      message
    end

    assert_equal ["192.0.2.2"], resolver_for(@server, no_aaaa: true).addresses("web.example")
  end

  def test_guessed_ids_make_the_resolver_switch_to_tcp
    @server.on("web.example") do |query, type, transport|
      next @server.answer(query, "web.example", type) if transport == :tcp

      Array.new(40) { |number| forged(query) { |message| message.id = (message.id + 1 + number) & 0xffff } }
    end

    assert_equal ["192.0.2.1"], resolver_for(@server, timeout: 60, no_aaaa: true).addresses("web.example")
    assert_equal %i[udp tcp], @server.questions.map(&:transport)
  end

  def test_ids_are_not_to_be_guessed
    ids = []
    @server.on("web.example") do |query, type, _|
      ids << query.id
      @server.answer(query, "web.example", type)
    end
    resolver = resolver_for(@server, cache_size: 0)
    20.times { resolver.addresses("web.example") }

    assert_operator ids.uniq.size, :>, 35
    assert_operator ids.each_cons(2).count { |one, other| (other - one).abs <= 1 }, :<, 5
  end

  private

  def forged(query)
    message = @server.failure(query, 0)
    message.add_answer("web.example.", 60, Resolv::DNS::Resource::IN::A.new("203.0.113.66"))
    yield message
    message.encode
  end
end
