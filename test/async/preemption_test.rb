# frozen_string_literal: true

require "test_helper"
require "heddle/async"
require "support/preempted"

# The async gems' own code is written for switches at waits only; what it calls is preempted as usual.
class AsyncPreemptionTest < Minitest::Test
  include Preempted

  FOLDER = File.dirname(Async::Task.instance_method(:wait).source_location.first)
  CODE = "def self.spin(others, seconds) = (limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds; " \
         "nil until others.any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit)"

  def test_code_of_the_async_gem_is_not_preempted
    assert_empty others_that_ran_beside(File.join(FOLDER, "planted.rb"), within: SLICE * 50)
  end

  def test_code_of_another_gem_whose_name_begins_alike_is_preempted
    path = File.join(Gem.path.first, "gems/async_example-1.0/lib/planted.rb")

    assert_equal [:other], others_that_ran_beside(path, within: LIMIT / 2)
  end

  def test_application_code_in_an_async_task_is_preempted
    assert_equal [:other], others_that_ran_beside("/srv/app/planted.rb", within: LIMIT / 2)
  end

  private

  # Who else has run while code of this path computed in an async task, for so many seconds at most.
  def others_that_ran_beside(path, within:)
    planted = Module.new { class_eval(CODE, path) }
    found = nil
    in_thread do
      Heddle.run do
        others = []
        Heddle.async { others << :other }
        Async do
          planted.spin(others, within)
          found = others.dup
        end.wait
      end
    end
    found
  end
end
