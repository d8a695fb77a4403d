# frozen_string_literal: true

# test: sanitize
require "test_helper"
require "English"
require "heddle"
require "objspace"

class AlarmHeapTest < Minitest::Test
  # Notes that it was called.
  Target = Struct.new(:name, :log) do
    def ring = log << name
  end

  def setup
    @heap = Heddle::Concurrency::AlarmHeap.new
    @log = []
  end

  def teardown
    GC.stress = false
  end

  def test_alarms_ring_in_the_order_of_their_times_and_not_early
    random = Random.new(13)
    times = Array.new(500) { random.rand(100) }
    times.each { |time| add(time) }
    @heap.ring(49) while @heap.first&.time&.<=(49)

    assert_equal times.select { |time| time > 49 }.min - 49, @heap.ring(49)
    assert_equal times.select { |time| time <= 49 }.sort, @log
    nil while @heap.ring(100)&.zero?

    assert_equal times.sort, @log
    assert_predicate @heap, :empty?
  end

  def test_of_equal_times_the_first_that_was_added_rings_first
    100.times { |i| add(i.odd? ? 1 : 2, name: i) }
    nil while @heap.ring(2)&.zero?

    assert_equal (0...100).partition(&:odd?).flatten, @log
  end

  def test_alarms_that_are_removed_amid_others_do_not_ring
    alarms = Array.new(200) { |i| add(i) }
    removed = (0...200).select { |i| i % 3 == 0 }.shuffle(random: Random.new(4))
    removed.each { |i| assert @heap.remove(alarms[i]) }

    refute @heap.remove(alarms[3])
    nil while @heap.ring(200)&.zero?
    assert_equal (0...200).to_a - removed, @log
    refute @heap.remove(alarms[1]), "it has rung"
  end

  def test_an_alarm_that_has_rung_or_was_removed_keeps_nothing
    alarms = Array.new(200) { |i| @heap.add(i, Object.new, :hash) }
    alarms.each_slice(2) { |alarm, _| @heap.remove(alarm) }
    nil while @heap.ring(200)&.zero?
    kept = alarms.flat_map { |alarm| ObjectSpace.reachable_objects_from(alarm) }

    assert_empty kept.grep_v(Module)
  end

  def test_an_alarm_of_another_heap_is_not_removed
    alarm = add(1)

    refute Heddle::Concurrency::AlarmHeap.new.remove(alarm)
    assert_same alarm, @heap.first
    assert_raises(TypeError) { @heap.remove(nil) }
  end

  def test_a_message_may_add_and_remove_alarms
    later = add(3)
    heap, log = @heap, @log
    target = Object.new
    target.define_singleton_method(:ring) do
      heap.remove(later)
      heap.add(1, Target.new("added", log), :ring)
    end
    @heap.add(1, target, :ring)
    nil while @heap.ring(1)&.zero?

    assert_equal ["added"], @log
    assert_predicate @heap, :empty?
  end

  def test_an_exception_of_an_alarm_is_raised_and_the_alarm_is_removed
    target = Object.new
    def target.ring = raise("no")
    @heap.add(1, target, :ring)
    other = add(2)

    assert_raises(RuntimeError) { @heap.ring(5) }
    assert_same other, @heap.first
  end

  def test_times_without_end_and_in_the_past
    far, past = add(1e300), add(-5)

    assert_same past, @heap.first
    assert_equal 0, @heap.ring(0)
    assert_predicate @heap.ring(1e9), :positive?
    assert_same far, @heap.first
    assert_raises(ArgumentError) { add(Float::NAN) }
    assert_raises(TypeError) { @heap.add("1", self, :ring) }
    assert_raises(TypeError) { @heap.add(1, self, 5) }
    assert_same far, @heap.first
  end

  def test_clear_removes_all
    alarms = Array.new(100) { |i| add(i) }
    @heap.clear

    assert_predicate @heap, :empty?
    assert_empty(alarms.select { |alarm| @heap.remove(alarm) })
    refute @heap.ring(1_000)
  end

  def test_alarms_survive_a_collector_that_runs_all_the_time
    GC.stress = true
    20.times { |i| add(20 - i, name: "alarm #{20 - i}") }
    nil while @heap.ring(20)&.zero?
    GC.stress = false

    assert_equal Array.new(20) { |i| "alarm #{i + 1}" }, @log
  end

  def test_alarms_survive_young_collections_of_an_old_heap
    10.times { GC.start } # the heap is old now, and the collector learns of a new alarm by a write barrier alone
    2_000.times do |i|
      add(i % 97, name: "alarm #{i}")
      GC.start(full_mark: false) if i % 100 == 0
    end
    nil while @heap.ring(97)&.zero?

    assert_equal (0...2_000).sort_by { |i| [i % 97, i] }.map { |i| "alarm #{i}" }, @log
  end

  def test_alarms_survive_compaction
    skip "this Ruby can't compact" unless GC.respond_to?(:compact)

    kept = Array.new(1_000) do |i|
      Array.new(10) { +"garbage" } # holes, which the alarms are moved into
      add(i % 97, name: "alarm #{i}")
    end
    GC.verify_compaction_references(expand_heap: true, toward: :empty)
    (0...1_000).step(2) { |i| assert @heap.remove(kept[i]) }
    GC.compact
    nil while @heap.ring(97)&.zero?

    assert_equal (1...1_000).step(2).sort_by { |i| [i % 97, i] }.map { |i| "alarm #{i}" }, @log
  end

  def test_an_alarm_keeps_its_heap_and_a_heap_alone_is_collected
    heaps = -> { GC.start || ObjectSpace.each_object(Heddle::Concurrency::AlarmHeap).count }
    before = heaps.call
    alarms = Array.new(200) { Heddle::Concurrency::AlarmHeap.new.add(1, self, :name) }
    assert_operator heaps.call, :>=, before + 199

    alarms.clear
    assert_operator heaps.call, :<, before + 100
  end

  def test_a_forked_child_has_a_heap_of_its_own
    10.times { |i| add(i) }
    pid = fork do
      @heap.remove(@heap.first)
      nil while @heap.ring(10)&.zero?
      exit!(@log == (1...10).to_a ? 0 : 1)
    end
    Process.wait(pid)

    assert_predicate $CHILD_STATUS, :success?
    nil while @heap.ring(10)&.zero?
    assert_equal (0...10).to_a, @log
  end

  def test_a_hundred_thousand_alarms
    random = Random.new(5)
    alarms = Array.new(100_000) { |i| add(random.rand, name: i) }
    removed = alarms.sample(50_000, random:)
    assert removed.all? { |alarm| @heap.remove(alarm) }
    times = (alarms - removed).map(&:time)

    assert_equal times.min, @heap.first.time
    nil while @heap.ring(1)&.zero?
    assert_equal times.sort, @log.map { |i| alarms[i].time }
  end

  private

  def add(time, name: time) = @heap.add(time, Target.new(name, @log), :ring)
end
