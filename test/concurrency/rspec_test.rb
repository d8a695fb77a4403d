# frozen_string_literal: true

require_relative "support/loop_helpers"
require "json"
require "open3"
require "rbconfig"
require "tmpdir"

class RSpecHelperTest < Minitest::Test
  SPEC = <<~RUBY
    require "heddle/rspec"

    RSpec.describe "example", :heddle do
      before { @loop = Fiber.current_scheduler }

      it("passes") { expect([@loop.nil?, Heddle.map([1, 2]) { |n| n }.sum]).to eq([false, 3]) }
      it("fails") { expect(1).to eq(2) }
      it("hangs", heddle: { time_limit: 0.01 }) { Fiber.scheduler.park }
      it("leaks") { Heddle.async(name: "leaking") { Fiber.scheduler.park } }
      it("has a task that fails") do
        Heddle.async { raise KeyError, "in the task" }
        Fiber.scheduler.park
      end
      it("is outside", heddle: false) { expect(Fiber.current_scheduler).to be_nil }
    end
  RUBY

  def test_examples_run_in_a_loop_with_a_time_limit_and_must_not_leak
    examples = run_spec.to_h { |example| [example["description"], example] }

    assert_equal ["is outside", "passes"], examples.select { |_, one| one["status"] == "passed" }.keys.sort
    assert_match(/did not end within 0.01 s/, error_of(examples, "hangs"))
    assert_match(/leaking \(ready\)|leaking \(waiting\)/, error_of(examples, "leaks"))
    assert_match(/in the task/, error_of(examples, "has a task that fails"))
    assert_match(/expected: 2/, error_of(examples, "fails"))
  end

  private

  def run_spec
    Dir.mktmpdir do |folder|
      path = File.join(folder, "example_spec.rb")
      File.write(path, SPEC)
      out, = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", *$LOAD_PATH.map { |dir| "-I#{dir}" }, "-e",
                             'require "rspec/core"; exit RSpec::Core::Runner.run(ARGV)', "--", "-f", "json", path)
      JSON.parse(out[/^\{.*\}$/m] || flunk(out)).fetch("examples")
    end
  end

  def error_of(examples, name) = examples.fetch(name).dig("exception", "message").to_s
end
