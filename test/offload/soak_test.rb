# frozen_string_literal: true

# test: alone

require_relative "support/offloaded"

# Many calls of many kinds, with errors and garbage collections in between, lose and leak nothing. HEDDLE_SOAK_CALLS
# makes it longer: millions.
class OffloadSoakTest < Minitest::Test
  include Offloaded

  LIMIT = 3600
  CALLS = Integer(ENV.fetch("HEDDLE_SOAK_CALLS", 20_000))

  # What each kind of call has to give; nil where it was told to end.
  KINDS = [
    ->(i) { NativeCalls.set_errno(i % 100) == [i % 100, true] },
    ->(i) { NativeCalls.call_back(1) { |n| [n, i] }.first == [0, i] },
    ->(i) { NativeCalls.sum_later(1, "x", i % 1000) == 120 * (i % 1000) },
    ->(_) { NativeCalls.sleep_for(0.00001).is_a?(Integer) },
    ->(_) { NativeCalls.allocate(1) },
    ->(i) { [i, i + 1].each.with_index.next == [i, 0] && !NativeCalls.same_thread? },
    ->(i) { Enumerator.new { |to| to << NativeCalls.set_errno(i % 50).first }.next == i % 50 },
    ->(i) { (NativeCalls.call_back(1) { raise IndexError, i.to_s }) && false rescue $!.message == i.to_s } # rubocop:disable Style
  ].freeze

  def test_calls_lose_and_leak_nothing
    wrong = []
    work(CALLS / 10, wrong)
    GC.start
    before = [resident, ObjectSpace.count_objects[:T_DATA]]
    rounds = 4
    rounds.times { work(CALLS / rounds, wrong) }
    GC.start

    assert_empty wrong
    assert_equal 0, NativeCalls.inside
    assert_equal 0, Heddle::Offload.threads[:running] + Heddle::Offload.threads[:queued]
    assert_operator ObjectSpace.count_objects[:T_DATA], :<, before[1] + 2000
    assert_operator resident, :<, before[0] + (64 * 1024), "KiB resident"
  end

  private

  def work(count, wrong)
    next_number = 0
    in_loop do
      20.times do
        Heddle.async do
          while next_number < count
            number = (next_number += 1)
            check(number, wrong)
            GC.compact if (number % 5000).zero?
            GC.start if (number % 500).zero?
          end
        end
      end
    end
  end

  # Every seventh is told to end at some moment.
  def check(number, wrong)
    kind = number % KINDS.size
    right = if (number % 7).zero?
              Heddle.timeout(number % 50 * 0.00001) { KINDS[kind].call(number) }
            else
              KINDS[kind].call(number)
            end
    wrong << [number, kind] unless right
  rescue Heddle::TimeoutError
    wrong << [number, :raised] unless (number % 7).zero?
  end

  def resident = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
end
