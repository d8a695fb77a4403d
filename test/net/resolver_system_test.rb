# frozen_string_literal: true

require "net/support/resolver_case"

# Names that only libc can look up, in threads.
class ResolverSystemTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  SystemResolver = Heddle::Net::Resolver::SystemResolver

  def test_libc_is_asked_and_its_addresses_come_back
    assert_includes %w[127.0.0.1 ::1], SystemResolver.new.addresses("localhost").first
  end

  def test_a_name_that_libc_does_not_know_has_no_addresses
    unknown = ->(_) { Addrinfo.getaddrinfo("not-a-number", nil, nil, nil, nil, Socket::AI_NUMERICHOST) }

    assert_equal [], SystemResolver.new(unknown).addresses("nobody.example")
  end

  def test_other_failures_of_libc_are_raised_as_they_are
    failing = ->(_) { raise SocketError, "getaddrinfo: Memory allocation failure" }
    error = assert_raises(SocketError) { SystemResolver.new(failing).addresses("web.example") }

    assert_equal "getaddrinfo: Memory allocation failure", error.message
  end

  def test_a_killed_thread_is_an_error_and_no_endless_wait
    error = assert_raises(SocketError) { SystemResolver.new(->(_) { Thread.exit }).addresses("web.example") }

    assert_match(/web\.example was killed/, error.message)
  end

  def test_lookups_at_once_are_bounded
    gate = Thread::Queue.new
    entered = Thread::Queue.new
    system = SystemResolver.new(->(_) { entered.push(true) && gate.pop && [] })
    limit = SystemResolver::THREADS
    askers = Array.new(limit + 4) { |number| Thread.new { system.addresses("host#{number}.example") } }
    running = system.instance_variable_get(:@running)
    wait_until("all places taken") { entered.size == limit && running.num_waiting == 4 }

    assert_equal limit, entered.size
    (limit + 4).times { gate.push(true) }

    assert_equal [[]] * (limit + 4), askers.map(&:value)
    assert_equal limit + 4, entered.size
  end

  def test_a_cancelled_lookup_gives_its_place_back_when_libc_is_done
    gate = Thread::Queue.new
    entered = Thread::Queue.new
    system = SystemResolver.new(->(_) { entered.push(true) && gate.pop && [] })
    3.times do
      asker = Thread.new { system.addresses("web.example") }
      asker.report_on_exception = false
      entered.pop
      asker.raise(Timeout::Error)

      assert_raises(Timeout::Error) { asker.value }
    end
    running = system.instance_variable_get(:@running)

    assert_equal 3, running.size
    4.times { gate.push(true) }

    assert_equal [], system.addresses("web.example")
    wait_until("all places given back") { running.empty? }
  end
end
