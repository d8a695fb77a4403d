# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"

# HEDDLE_BENCH_BEFORE=FOLDER: figures of another checkout in the same run.
class BenchmarkBeforeTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  PROGRAM = <<~'RUBY'
    require "./benchmark/support/bench"
    require "./benchmark/#{ARGV[0]}/suite"
    suite = Bench::Suite.load(ARGV[0])
    keys = suite.participants.map(&:key)
    other = suite.contestant(ARGV[1])
    seen = { keys:, role: other.role }
    seen[:command] = other.command(1, ".", []) if other.respond_to?(:command)
    seen[:two] = other.with_processes(2).command(1, ".", []) if other.respond_to?(:with_processes)
    print JSON.generate(seen)
  RUBY

  def suite(name, contestant)
    output, status = Open3.capture2e({ "HEDDLE_BENCH_BEFORE" => "/other" }, RbConfig.ruby, "-r", "json", "-e", PROGRAM,
                                     name, contestant, chdir: ROOT)
    assert_predicate status, :success?, output
    JSON.parse(output)
  end

  { "http" => "heddle-before", "rails" => "heddle-refork-before", "stalls" => "heddle-before",
    "modes" => "loops-before", "http2" => "heddle-before" }.each do |name, contestant|
    define_method("test_#{name}_runs_the_server_of_the_other_checkout_beside_this_one") do
      seen = suite(name, contestant)

      assert_includes seen["keys"], contestant
      assert_includes seen["keys"], contestant.delete_suffix("-before")
      assert_equal "baseline", seen["role"]
      assert_includes seen["command"], "/other/exe/heddle"
      assert_includes seen["two"], "/other/exe/heddle"
    end
  end

  def test_the_other_checkouts_scheduler_is_measured_and_no_contestant_twice
    keys = suite("scheduler", "heddle-epoll-before")["keys"]

    assert_includes keys, "heddle-epoll"
    refute_includes keys, "threads-before"
  end

  def test_without_another_checkout_no_contestant_is_measured_twice
    output, = Open3.capture2e(RbConfig.ruby, "benchmark/http.rb", "--list", chdir: ROOT)

    refute_match(/before/, output)
  end
end
