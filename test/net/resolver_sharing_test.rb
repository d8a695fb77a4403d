# frozen_string_literal: true

require "net/support/resolver_case"

# Those who ask for one name at the same time share one lookup. Shown with threads here; with fibers in
# resolver_scheduler_test.rb.
class ResolverSharingTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  # What a cancelled fiber is raised: no StandardError.
  class Cancelled < Exception; end

  def setup
    super
    @server = name_server
    @server.host("web.example", "192.0.2.1")
    @resolver = resolver_for(@server, cache_size: 0, no_aaaa: true, timeout: 30)
    @threads = []
  end

  def teardown
    @threads.each(&:kill)
    super
  end

  def test_concurrent_lookups_of_one_name_share_one_query
    @server.hold
    askers = Array.new(10) { ask("web.example") }
    wait_for_waiting("web.example", 9)
    @server.release

    assert_equal [["192.0.2.1"]] * 10, askers.map(&:value)
    assert_equal 1, @server.questions.size
  end

  def test_lookups_of_different_names_do_not_wait_for_each_other
    @server.hold
    slow = ask("web.example")
    @server.wait_for_questions(1)
    other = name_server
    other.host("quick.example", "192.0.2.2")

    assert_equal ["192.0.2.2"], resolver_for(other).addresses("quick.example")
    assert_predicate slow, :alive?
    @server.release

    assert_equal ["192.0.2.1"], slow.value
  end

  def test_a_failure_is_shared_too_and_each_asker_has_an_error_of_his_own
    @server.on("sick.example") { |query, *| @server.failure(query, 2) }
    @server.hold
    askers = Array.new(3) { ask("sick.example") }
    wait_for_waiting("sick.example", 2)
    @server.release
    errors = askers.map(&:value)

    assert(errors.all? { |error| error.is_a?(Socket::ResolutionError) && error.error_code == Socket::EAI_AGAIN })
    assert_equal 3, errors.map(&:object_id).uniq.size
    assert_equal 2, @server.questions.size
  end

  def test_when_the_first_asker_is_cancelled_the_next_carries_on
    @server.hold
    first = ask("web.example")
    @server.wait_for_questions(1)
    others = Array.new(3) { ask("web.example") }
    wait_for_waiting("web.example", 3)
    first.raise(Cancelled)

    assert_kind_of Cancelled, first.value
    assert @server.wait_for_questions(2), "nobody took over"
    @server.release

    assert_equal [["192.0.2.1"]] * 3, others.map(&:value)
    assert_equal 2, @server.questions.size
  end

  def test_when_all_but_one_are_cancelled_the_last_is_answered
    @server.hold
    first = ask("web.example")
    @server.wait_for_questions(1)
    others = Array.new(4) { ask("web.example") }
    wait_for_waiting("web.example", 4)
    # When the first is cancelled, the second asks in its place; then that is cancelled, and so on.
    [first, *others.first(3)].each { |asker| asker.raise(Cancelled) }
    @server.wait_for_questions(2)
    @server.release

    assert_equal ["192.0.2.1"], others.last.value
  end

  def test_a_waiter_cancelled_at_its_turn_passes_the_turn_on
    flights = Heddle::Net::Resolver::SingleFlight.new
    start = lambda do |waiting, &work|
      thread = in_thread { flights.share(:name, &work) }
      wait_until("#{waiting} wait") { flights.waiting(:name) == waiting }
      thread
    end
    assert_raises(Cancelled) do
      flights.share(:name) do
        @second = start.call(1) { sleep }
        @third = start.call(2) { :done }
        raise Cancelled
      end
    end
    # Woken by what was just raised, but not yet running: this thread has held the lock since.
    @second.raise(Cancelled)
    wait_until("the third had its turn") { @third.stop? && !@third.alive? }

    assert_equal :done, @third.value
    assert_kind_of Cancelled, @second.value
  end

  def test_nothing_is_left_behind_when_all_are_cancelled
    @server.hold
    askers = Array.new(3) { ask("web.example") }
    wait_for_waiting("web.example", 2)
    @server.wait_for_questions(1)
    askers.each { |asker| asker.raise(Cancelled) }.each(&:join)

    assert_equal 0, @resolver.instance_variable_get(:@flights).size
    @server.release

    assert_equal ["192.0.2.1"], @resolver.addresses("web.example")
  end

  def test_timeout_ends_a_lookup
    @server.hold

    assert_raises(Timeout::Error) { Timeout.timeout(0.02) { @resolver.addresses("web.example") } }
    @server.release

    assert_equal ["192.0.2.1"], @resolver.addresses("web.example")
  end

  def test_lookups_leave_no_descriptor_open
    @resolver.addresses("web.example")
    before = Dir.children("/dev/fd").size
    20.times { @resolver.addresses("web.example") }

    assert_equal before, Dir.children("/dev/fd").size
  end

  private

  def ask(name)
    in_thread { @resolver.addresses(name) }
  end

  def in_thread
    thread = Thread.new do
      yield
    rescue Exception => e
      e
    end
    @threads << thread
    thread
  end

  def wait_for_waiting(name, count)
    flights = @resolver.instance_variable_get(:@flights)
    wait_until("#{count} wait for #{name}") { flights.waiting(name) == count }
  end
end
