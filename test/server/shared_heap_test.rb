# frozen_string_literal: true

require "test_helper"
require "open3"
require "heddle/server"

# Ruby's heap is compacted until that empties hardly any page.
class SharedHeapTest < Minitest::Test
  SharedHeap = Heddle::Server::SharedHeap

  # @param counts [Array<Integer>] the pages at the start and after each compaction
  # @return [Integer] how many compactions there were
  def compactions(*counts)
    calls = 0
    SharedHeap.pack(warm_up: -> { calls += 1 }, pages: -> { counts[calls] || counts.last })
    calls
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
end
