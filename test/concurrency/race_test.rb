# frozen_string_literal: true

require_relative "support/loop_helpers"

class RaceTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_first_that_ends_wins_and_the_others_are_cancelled
    log = []
    in_loop do
      value = Heddle.race([9, 2, 5]) do |n|
        turns(n)
        n
      ensure
        log << n
      end
      assert_equal 2, value
    end

    assert_equal [2, 5, 9], log.sort
  end

  def test_contenders_that_can_be_called_need_no_block
    assert_equal :quick, in_loop { Heddle.race([-> { forever }, -> { :quick }]) }
  end

  def test_winner_may_return_nil
    assert_nil in_loop { Heddle.race([1, 2]) { |n| n == 1 ? forever : nil } }
  end

  def test_failure_decides_too
    log = []
    error = assert_raises(KeyError) do
      in_loop do
        Heddle.race([1, 2]) do |n|
          raise KeyError, "first" if n == 2

          begin
            forever
          ensure
            log << :cancelled
          end
        end
      end
    end

    assert_equal "first", error.message
    assert_equal [:cancelled], log
  end

  def test_ignored_errors_leave_the_race_to_the_others
    value = in_loop do
      Heddle.race([1, 2, 3], ignore: [IOError]) do |n|
        raise IOError, "mirror #{n}" if n < 3

        turns && n
      end
    end

    assert_equal 3, value
  end

  def test_when_all_drop_out_the_first_error_is_raised_and_the_others_attached
    error = assert_raises(IOError) do
      in_loop { Heddle.race([1, 2, 3], ignore: [IOError]) { |n| raise IOError, "mirror #{n}" } }
    end

    assert_equal "mirror 1", error.message
    assert_equal ["mirror 2", "mirror 3"], error.further_failures.map(&:message)
  end

  def test_code_after_it_may_wait
    in_loop do
      Heddle.race([1, 2]) { |n| n }
      turns
      assert_equal 2, Heddle.race([2]) { |n| turns && n }
    end
  end

  def test_time_limit_around_it_ends_all
    ended = 0
    in_loop do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.005) do
          Heddle.race([1, 2]) do
            forever
          ensure
            ended += 1
          end
        end
      end
    end

    assert_equal 2, ended
  end

  def test_an_empty_list_raises_an_argument_error
    assert_raises(ArgumentError) { in_loop { Heddle.race([]) { 1 } } }
  end
end
