# frozen_string_literal: true

# test: each selector
# test: smoke

require "test_helper"
require "heddle"

# Messages go from any process of a server to all subscribers, with positions.
class PubSubTest < Minitest::Test
  PubSub = Heddle::PubSub

  def in_loop(&)
    Heddle.run(selector: selector_under_test) { Heddle.timeout(60, &) }
  end

  def new_topic = "#{name}:#{rand(2**64)}"

  def subscription(topic, since: nil) = PubSub::Subscription.new(Fiber.scheduler, topic, since)

  # Positions are of one topic; their offsets are compared.
  def setup
    PubSub::History.open(16 << 20, 100, 300)
  end

  def offset(position) = Integer(position[/\d+\z/])

  def test_a_subscriber_gets_later_messages_in_order
    topic = new_topic
    got = in_loop do
      PubSub.publish(topic, "before")
      one = subscription(topic)
      PubSub.publish("#{topic}:other", "another topic")
      positions = %w[a b c].map { |data| PubSub.publish(topic, data) }
      taken = Array.new(3) { one.take }
      assert_equal positions, taken.map(&:last)
      taken.map(&:first)
    end

    assert_equal %w[a b c], got
  end

  def test_offsets_count_the_messages_of_all_topics
    offsets = Array.new(5) { |i| offset(PubSub.publish("#{new_topic}#{i % 2}", "x")) }

    assert_equal (0..4).map { |i| offsets.first + i }, offsets
  end

  # A page may be made before its topic has had any message.
  def test_a_position_of_a_topic_that_was_never_published_to_is_one_to_continue_from
    topic = new_topic
    position = PubSub.position(topic)
    2.times { PubSub.publish(new_topic, "x") }
    PubSub.publish(topic, "first")
    in_loop { assert_equal "first", subscription(topic, since: position).take.first }
  end

  # More topics than the table has room for: the history forgets this one again and again.
  def test_the_first_message_of_a_topic_that_the_history_has_forgotten_is_not_a_reset
    topic = new_topic
    in_loop do
      PubSub.publish(topic, "before")
      one = subscription(topic)
      40_000.times { |i| PubSub.publish("#{topic}:#{i}", "") }
      PubSub.publish(topic, "fresh")

      assert_equal "fresh", one.take.first
    end
  end

  def test_published_messages_are_counted_anew_in_a_child_process
    topic = new_topic
    PubSub.publish(topic, "x")
    reader, writer = IO.pipe
    child = fork do
      3.times { PubSub.publish(topic, "x") }
      writer.write(PubSub::History.published.to_s)
      writer.close
      exit!(0)
    end
    writer.close

    assert_equal "3", reader.read
  ensure
    Process.wait(child) if child
  end

  def test_since_gives_what_was_missed_then_continues
    topic = new_topic
    first, = Array.new(3) { |i| PubSub.publish(topic, i.to_s) }
    in_loop do
      one = subscription(topic, since: first)

      assert_equal %w[1 2], Array.new(2) { one.take.first }
      PubSub.publish(topic, "3")
      assert_equal "3", one.take.first
    end
  end

  def test_a_subscriber_whose_history_is_overwritten_gets_a_reset_and_continues
    topic = new_topic
    first = PubSub.publish(topic, "0")
    last = Array.new(150) { |i| PubSub.publish(topic, i.to_s) }.last
    in_loop do
      one = subscription(topic, since: first)

      assert_equal [nil, last], one.take
      PubSub.publish(topic, "next")
      assert_equal "next", one.take.first
    end
  end

  def test_an_invalid_position_causes_a_reset
    topic = new_topic
    last = PubSub.publish(topic, "x")
    epoch = last[/\A[^:]+/]
    wrong = ["", "x", "#{epoch}:", "#{epoch}:x", "other1234567:1", "#{epoch}:#{"9" * 19}", "#{epoch}:#{"9" * 30}",
             "\0" * 40]
    in_loop do
      wrong.each { |position| assert_equal [nil, last], subscription(topic, since: position).take, position.inspect }
    end
  end

  def test_messages_come_from_other_processes
    topic = new_topic
    in_loop do
      one = subscription(topic)
      pid = fork do
        10.times { |i| PubSub.publish(topic, i.to_s) }
        exit!(0)
      end
      assert_equal (0..9).map(&:to_s), Array.new(10) { one.take.first }
      Process.wait(pid)
    end
  end

  # A position is known to the publisher at once, and to another loop of another process.
  def test_a_child_reads_what_its_parent_publishes
    topic = new_topic
    reader, writer = IO.pipe
    ready, tell = IO.pipe
    pid = fork do
      in_loop do
        one = subscription(topic)
        tell.write("x")
        writer.write(Array.new(3) { one.take.first }.join(","))
      end
      exit!(0)
    end
    ready.read(1)
    3.times { |i| PubSub.publish(topic, i.to_s) }
    writer.close

    assert_equal "0,1,2", reader.read
    Process.wait(pid)
  end

  def test_messages_are_the_same_frozen_string_for_all_subscribers
    topic = new_topic
    in_loop do
      subscriptions = Array.new(3) { subscription(topic) }
      PubSub.publish(topic, "x" * 20_000)
      strings = subscriptions.map { |one| one.take.first }

      assert_equal 1, strings.map(&:object_id).uniq.size
      assert_predicate strings.first, :frozen?
    end
  end

  def test_text_is_utf_8_and_other_bytes_are_binary
    topic = new_topic
    payloads = ["", "text", "é", "\xFF", "é".encode("UTF-16LE")]
    in_loop do
      one = subscription(topic)
      payloads.each { |payload| PubSub.publish(topic, payload) }
      taken = payloads.map { one.take.first }

      assert_equal ["", "text", "é", "\xFF".b, "\xE9\x00".b], taken
      assert_equal [Encoding::UTF_8] * 3 << Encoding::BINARY << Encoding::BINARY, taken.map(&:encoding)
      assert(taken.all?(&:frozen?))
    end
  end

  # More than the bound waits for it: the rest stays in the history until it has taken what it has.
  def test_a_slow_subscriber_misses_nothing_that_the_history_has
    topic = new_topic
    large = "x" * 100_000
    in_loop do
      one = subscription(topic)
      40.times { |i| PubSub.publish(topic, large + i.to_s) }

      assert_equal (0..39).map(&:to_s), Array.new(40) { one.take.first.delete_prefix(large) }
    end
  end

  def test_empty_messages_do_not_queue_without_bound
    topic = new_topic
    in_loop do
      slow = subscription(topic)
      40.times do
        500.times { PubSub.publish(topic, "") }
        sleep 0
      end

      assert_operator PubSub::Subscription.statistics(Fiber.scheduler)[:delivered], :<, 17_000
      assert_equal "", slow.take.first
    end
  end

  # A loop that was away for longer than the memory has room is told so: no message is lost silently.
  def test_a_loop_that_is_overrun_gets_a_reset
    topic = new_topic
    large = "x" * 1_000_000
    in_loop do
      one = subscription(topic)
      last = Heddle.without_preemption { Array.new(30) { |i| PubSub.publish(topic, large + i.to_s) } }.last

      assert_equal [nil, last], one.take
      PubSub.publish(topic, "next")
      assert_equal "next", one.take.first
    end
  end

  # So many do not catch up in one tick. What is published meanwhile comes in its order.
  def test_all_subscribers_catch_up_after_an_overrun
    topics = Array.new(3) { new_topic }
    in_loop do
      subscriptions = Array.new(900) { |i| subscription(topics[i % 3]) }
      Heddle.without_preemption do
        topics.each { |topic| PubSub.publish(topic, "missed") }
        5.times { PubSub.publish("#{topics.first}:other", "x" * 4_000_000) }
        topics.each { |topic| PubSub.publish(topic, "kept") }
      end
      sleep 0
      last = topics.map { |topic| PubSub.publish(topic, "later") }
      subscriptions.each_with_index do |one, i|
        taken = []
        taken << one.take until taken.last&.last == last[i % 3]

        assert_includes [[nil], [nil, "later"]], taken.map(&:first)
      end
    end
  end

  def test_subscribers_share_what_they_catch_up_with_after_an_overrun
    topic = new_topic
    in_loop do
      subscriptions = Array.new(5) { subscription(topic) }
      Heddle.without_preemption do
        5.times { PubSub.publish("#{topic}:other", "x" * 4_000_000) }
        3.times { |i| PubSub.publish(topic, i.to_s * 10_000) }
      end
      strings = subscriptions.map { |one| Array.new(3) { one.take.first } }

      assert_equal [%w[0 1 2]], strings.map { |taken| taken.map { |string| string[0] } }.uniq
      assert_equal 3, strings.flatten.map(&:object_id).uniq.size
    end
  end

  # @return [Integer] subscribers that have been given their messages, counted once for each message
  def delivered = PubSub::Subscription.statistics(Fiber.scheduler)[:delivered]

  # Ticks in which other fibers run, until so many messages have been delivered.
  # @return [Array<Integer>] what had been delivered in each of them
  def ticks_until(count)
    ticks = []
    until ticks.last == count
      yield ticks.last if block_given? && ticks.any?
      sleep 0
      ticks << delivered
    end
    ticks
  end

  def test_other_fibers_run_while_a_message_is_delivered_to_many
    topic = new_topic
    in_loop do
      subscriptions = Array.new(2_000) { subscription(topic) }
      PubSub.publish(topic, "x")
      steps = [0, *ticks_until(2_000)].each_cons(2).map { |before, after| after - before }

      assert_operator steps.max, :<=, 512 # two slices of 256, where an event and a message of the loop come together
      assert_equal 2_000, subscriptions.count { |one| one.take.first == "x" }
    end
  end

  # The first subscriber writes to a pipe. A child without a time limit, since with other threads the loop would poll.
  def test_the_loop_polls_while_a_message_is_given_to_many_also_with_one_thread
    topic = new_topic
    result, tell = IO.pipe
    child = fork do
      at = Heddle.run(selector: selector_under_test) { delivered_at_an_event(topic, 4_000) }
      tell.write(at.to_s) if Thread.list.one?
      exit!(0)
    end
    tell.close

    assert_includes 1..1_536, result.read.to_i, "the pipe was readable after the first of 4,000"
  ensure
    Process.wait(child) if child
  end

  # @return [Integer] how many had been given the message when a fiber noticed what the first of them wrote to a pipe
  def delivered_at_an_event(topic, count)
    kept = Array.new(count) { subscription(topic) }
    readable, writable = IO.pipe
    first = subscription(topic)
    noticed = Heddle.async { readable.read(1) && delivered }
    Heddle.async { first.take && writable.write("x") }
    sleep 0.01 # both wait now, and the selector has the pipe
    PubSub.publish(topic, "x")
    noticed.value.tap { kept.clear }
  end

  def test_a_message_that_is_published_while_another_is_given_comes_behind_it_for_all
    topic = new_topic
    in_loop do
      subscriptions = Array.new(1_000) { subscription(topic) }
      PubSub.publish(topic, "0")
      published = 0
      ticks_until(4_000) { PubSub.publish(topic, (published += 1).to_s) if published < 3 }
      got = subscriptions.map { |one| Array.new(4) { one.take } }

      assert_equal [%w[0 1 2 3]], got.map { |taken| taken.map(&:first) }.uniq
      assert_equal 1, got.uniq.size
    end
  end

  # Messages that wait together leave together, in the same tick for each subscriber.
  def test_many_messages_are_given_to_a_subscriber_in_one_tick
    topic = new_topic
    in_loop do
      subscriptions = Array.new(600) { subscription(topic) }
      10.times { |i| PubSub.publish(topic, i.to_s) }

      assert(ticks_until(6_000).all? { |count| (count % 10).zero? })
      assert_equal [(0..9).map(&:to_s)], subscriptions.map { |one| Array.new(10) { one.take.first } }.uniq
    end
  end

  # Each tick closes the first of them that have not had it, and the last ones; new ones do not get the message.
  def test_subscribers_come_and_go_while_a_message_is_given_to_many
    topic = new_topic
    in_loop do
      all = Array.new(1_500) { subscription(topic) }
      position = PubSub.publish(topic, "x")
      sleep 0 while delivered.zero?
      left = (1..3).flat_map do
        waiting = all.reject { |one| one.position == position }
        leaving = [*waiting.last(5), *waiting.first(5), *all.last(5)] & all
        leaving.each(&:close)
        all -= leaving
        late = subscription(topic)
        sleep 0
        late
      end
      sleep 0 while all.any? { |one| one.position != position }
      PubSub.publish(topic, "next")

      assert_equal [%w[x next]], all.map { |one| Array.new(2) { one.take.first } }.uniq
      assert_equal %w[next], left.map { |one| one.take.first }.uniq
    end
  end

  def test_all_subscribers_may_leave_while_a_message_is_given_to_them
    topic = new_topic
    in_loop do
      all = Array.new(600) { subscription(topic) }
      PubSub.publish(topic, "x")
      sleep 0 while delivered.zero?
      all.each(&:close)
      sleep 0
      later = subscription(topic)
      PubSub.publish(topic, "later")

      assert_equal "later", later.take.first
    end
    in_loop do
      held = Array.new(600) { subscription(topic) }
      PubSub.publish(topic, "x")
      sleep 0 while delivered.zero?
      assert_operator delivered, :<, held.size # the loop ends in between
    end
  end

  # Subscribers that have taken it keep it no longer: meanwhile it is in no other place than the broadcast.
  def test_a_message_that_is_given_to_many_outlives_collections
    topic = new_topic
    in_loop do
      waiting = Array.new(1_000) { subscription(topic) }
      position = PubSub.publish(topic, "x" * 5_000)
      until waiting.empty?
        sleep 0
        given, waiting = waiting.partition { |one| one.position == position }
        assert(given.all? { |one| one.take.first == "x" * 5_000 })
        GC.start
        Array.new(5_000) { "y" * 5_000 }
      end
    end
  end

  def test_a_block_runs_for_each_message_in_a_task_that_can_be_cancelled
    topic = new_topic
    got = Heddle::Channel.new
    in_loop do
      task = PubSub.subscribe(topic) { |message| got << message }
      position = PubSub.publish(topic, { "a" => 1 })
      message = got.pop

      assert_equal ['{"a":1}', position, topic, false], [message.data, message.position, message.topic, message.reset?]
      task.cancel
      task.wait
      PubSub.publish(topic, "nobody hears it")
      assert_equal 0, PubSub::Subscription.statistics(Fiber.scheduler)[:subscribers]
    end
  end

  def test_a_task_that_is_cancelled_before_it_begins_leaves_no_subscription
    in_loop do
      task = PubSub.subscribe(new_topic) { flunk }
      task.cancel
      task.wait

      assert_equal 0, PubSub::Subscription.statistics(Fiber.scheduler)[:subscribers]
    end
  end

  def test_subscriptions_end_with_their_loop
    one = in_loop { subscription(new_topic) }

    assert_nil one.position
    in_loop { assert_nil one.take }
  end

  def test_many_subscribers_come_and_go_while_messages_are_given
    topics = Array.new(5) { new_topic }
    random = Random.new(7)
    in_loop do
      all = []
      300.times do
        all << subscription(topics.sample(random: random))
        all.delete_at(random.rand(all.size)).close if all.size > 20
        PubSub.publish(topics.sample(random: random), "x")
        GC.start if random.rand(50).zero?
        Heddle::PubSub::Subscription.statistics(Fiber.scheduler)
        sleep 0
      end
      all.each(&:close)
      statistics = PubSub::Subscription.statistics(Fiber.scheduler)
      assert_equal({ subscribers: 0, topics: 0 }, statistics.slice(:subscribers, :topics))
    end
  end

  # Nobody holds these subscribers. The first allocation with the collector on is the copy of a message: taking from the
  # one that is held allocates nothing until there is one. A child, as what is used after it was freed may end it.
  def collect_while_messages_are_given(topics)
    child = fork do
      in_loop do
        GC.disable
        100.times { |i| subscription(topics[i % topics.size]) }
        held = subscription(last = new_topic)
        PubSub.publish(last, "first")
        held.take # so that Ruby has cached what it calls below
        yield
        PubSub.publish(last, "last")
        GC.stress = true
        GC.enable
        held.take
        GC.stress = false
        exit!(PubSub::Subscription.statistics(Fiber.scheduler)[:topics] <= topics.size + 1 ? 0 : 1)
      end
    end
    _, status = Process.wait2(child)

    assert_predicate status, :success?
  end

  def test_the_collector_may_take_the_last_subscriber_of_a_topic_while_its_message_is_copied
    topics = Array.new(100) { new_topic }
    collect_while_messages_are_given(topics) { topics.each { |topic| PubSub.publish(topic, "x" * 1_000) } }
  end

  def test_the_collector_may_take_a_subscriber_that_catches_up
    topics = Array.new(2) { new_topic }
    collect_while_messages_are_given(topics) do
      5.times { PubSub.publish("other", "x" * 4_000_000) }
      3.times { topics.each { |topic| PubSub.publish(topic, "x" * 1_000) } }
    end
  end

  def test_a_message_that_is_too_large_is_rejected
    assert_match(/limit is 1024/, assert_raises(ArgumentError) { PubSub.publish("x" * 1025, "") }.message)
    assert_match(/the topic .*nil/, assert_raises(ArgumentError) { PubSub.publish(nil, "") }.message)
    assert_match(/the topic .*nil/, assert_raises(ArgumentError) { PubSub.position(nil) }.message)
    assert_match(/the topic .*nil/, in_loop { assert_raises(ArgumentError) { PubSub.subscribe(nil) { nil } } }.message)
    assert_match(/the topic .*nil/, assert_raises(ArgumentError) { Heddle::EventStream.new(nil) }.message)
    assert_match(/limit is 1024/, assert_raises(ArgumentError) { PubSub.position("x" * 1025) }.message)
    assert_match(/pubsub_memory/, assert_raises(ArgumentError) { PubSub.publish("x", "x" * 5_000_000) }.message)
    assert_match(/limit is 1024/, in_loop { assert_raises(ArgumentError) { subscription("x" * 1025) } }.message)
  end

  def test_subscribing_needs_a_loop_and_a_block
    assert_raises(Heddle::NoLoopError) { PubSub.subscribe("a") { nil } }
    assert_match(/needs a block/, assert_raises(ArgumentError) { PubSub.subscribe("a") }.message)
  end
end
