# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/http/native"
require_relative "../../../benchmark/stalls/application"

class StallsBenchmarkApplicationTest < Minitest::Test
  def setup
    need_program("cc")
    @application = Bench::Stalls::Application.new(Bench::HTTP::Native.program("work.so"))
  end

  def test_every_kind_of_work_takes_its_time
    %w[sleep native held burn ruby rsa bcrypt zlib ticker].each do |kind|
      began = now
      assert_equal 200, status("/#{kind}/20"), kind
      assert_operator now - began, :>=, 0.019, kind
    end
  end

  def test_only_native_work_gives_up_the_lock
    ran = %w[native held].to_h do |kind|
      count = 0
      counter = Thread.new { loop { (count += 1) && Thread.pass } }
      Thread.pass until count.positive?
      before = count
      status("/#{kind}/500")
      after = count
      counter.kill.join
      [kind, after - before]
    end

    assert_operator ran["native"], :>, ran["held"]
  end

  def test_hello_and_what_there_is_not
    assert_equal [200, 404], [status("/hello"), status("/nothing/1")]
  end

  private

  def status(path) = @application.call({ "PATH_INFO" => path }).first

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
