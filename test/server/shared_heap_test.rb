# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "heddle/server"

# Ruby's heap is compacted until that empties hardly any page, and malloc's gaps are filled.
class SharedHeapTest < Minitest::Test
  SharedHeap = Heddle::Server::SharedHeap

  # @param counts [Array<Integer>] the pages at the start and after each compaction
  # @return [Integer] how many compactions there were
  def compactions(*counts)
    calls = 0
    SharedHeap.pack(warm_up: -> { calls += 1 }, pages: -> { counts[calls] || counts.last }, fill: -> { calls += 100 })
    assert_operator calls, :>=, 100, "gaps are filled after the last compaction"
    calls - 100
  end

  def test_a_compaction_that_empties_few_pages_is_the_last_one
    assert_equal 1, compactions(1_000, 1_000)
    assert_equal 1, compactions(1_000, 981)
    assert_equal 4, compactions(1_000, 900, 850, 830, 820, 700)
  end

  def test_a_heap_that_has_grown_is_left_alone
    assert_equal 1, compactions(100, 110, 50)
  end

  def test_the_number_of_compactions_is_limited
    assert_equal 8, compactions(*(0..20).map { |count| 1_000_000 >> count })
  end

  # Seven of ten objects are garbage, in each page of their size.
  SCRIPT = <<~'RUBY'
    require "heddle/server"
    def fragment
      all = Array.new(200_000) { |number| "a string of sixty bytes, which has a slot of eighty: #{number}" }
      all.each_slice(10).flat_map { |some| some.first(3) }
    end
    KEPT = fragment
    GC.start
    pages = -> { GC.stat(:heap_allocated_pages) }
    puts pages.call
    Heddle::Server::SharedHeap.pack
    puts pages.call
    Process.warmup
    puts pages.call
  RUBY

  def test_compaction_stops_when_it_gains_little
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", SCRIPT)
    assert_predicate status, :success?, out
    fragmented, packed, later = out.split.map(&:to_i)

    assert_operator packed, :<, fragmented * 0.7
    assert_operator later, :>, packed * 0.95
  end

  # Every second block is freed: a gap between two others.
  GAPS = <<~RUBY
    require "heddle/server"
    fill = Heddle::Native::Processes.method(:fill_heap_gaps)
    GC.disable
    kept = Array.new(20_000) { "a" * 1_000 }
    kept.each_slice(2) { |one, _| one.clear }
    puts [fill.call, fill.call].inspect
  RUBY

  def test_gaps_between_blocks_are_filled_and_again_by_the_next_mold
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", GAPS)
    assert_predicate status, :success?, out
    skip "malloc is not glibc's" if out.strip == "[nil, nil]"
    first, second = JSON.parse(out)

    assert_operator first, :>, 9_000_000
    assert_in_delta first, second, 1_000_000
  end

  # Frees every second block of the smallest size, and before that some blocks of another thread, which malloc keeps in
  # the main thread's cache.
  FOREIGN = <<~RUBY
    require "heddle/server"
    require "fiddle"
    GC.disable
    mine = Array.new(100_000) { Fiddle.malloc(24) }
    Thread.new { Array.new(100) { Fiddle.malloc(24) } }.value.each { |block| Fiddle.free(block) }
    mine.each_slice(2) { |block, _| Fiddle.free(block) }
    puts Heddle::Native::Processes.fill_heap_gaps.inspect
  RUBY

  def test_gaps_are_filled_while_the_cache_of_malloc_has_blocks_of_another_thread
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", FOREIGN)
    skip "malloc is not glibc's" if out.strip == "nil"
    assert_predicate status, :success?, out

    assert_operator Integer(out), :>=, 50_000 * 24
  end

  # Each generation of molds replaces what it keeps, 40 MB.
  GENERATIONS = <<~RUBY
    require "heddle/server"
    random = Random.new(1)
    kept = Array.new(20_000) { "a" * random.rand(700..3_600) }
    resident = lambda do
      40_000.times { kept[random.rand(kept.size)] = "a" * random.rand(700..3_600) }
      GC.start
      Heddle::Native::Processes.fill_heap_gaps or abort "nil"
      File.read("/proc/self/statm").split[1].to_i * 4_096
    end
    first = resident.call
    puts Array.new(5) { resident.call }.last - first
  RUBY

  def test_generations_of_molds_fill_no_more_and_more
    out, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", GENERATIONS)
    skip "malloc is not glibc's" if out.strip == "nil"
    assert_predicate status, :success?, out

    assert_operator Integer(out), :<, 50_000_000
  end
end
