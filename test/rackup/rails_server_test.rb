# frozen_string_literal: true

require "test_helper"
require "examples/served_example"
require "heddle/server"
require "tmpdir"

# `rails server -u heddle`, with the application of examples/rails.
class RailsServerTest < Minitest::Test
  PATIENCE = 60

  def setup
    skip "needs the gems of examples/rails: bin/setup" unless ServedExample.gems?("rails")
    @folder = Dir.mktmpdir
  end

  def teardown = @folder && FileUtils.rm_rf(@folder)

  def test_rails_server_serves_and_ends_with_ctrl_c = serve_and_stop("-u", "heddle")

  def test_where_no_other_server_is_in_the_gemfile_it_is_the_one = serve_and_stop

  # As Puma does. The process that was started stays, as a container's first one must.
  def test_in_production_it_starts_as_many_workers_as_web_concurrency_says
    in_production("WEB_CONCURRENCY" => "3") do |served, pidfile|
      assert_workers ["worker 0", "worker 1", "worker 2"], served
      assert_equal served.pid, File.read(pidfile).to_i
    end
  end

  def test_in_production_it_starts_a_worker_for_each_processor_and_two_at_least
    in_production("WEB_CONCURRENCY" => nil) do |served, _|
      workers = Array.new([Heddle::Server::Cores.available, 2].max) { |index| "worker #{index}" }

      assert_workers workers.sort, served
      refute_includes served.output, "has no effect", "nobody has named a port that does not count"
    end
  end

  private

  # @yieldparam served [ServedProcess]
  # @yieldparam pidfile [String]
  def in_production(variables)
    pidfile = File.join(@folder, "server.pid")
    environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64,
                                                      "PORT" => nil, **variables)
    command = [RbConfig.ruby, "bin/rails", "server", "-u", "heddle", "-b", "127.0.0.1", "-p", "0", "-P", pidfile]
    served = ServedProcess.new(command, environment:, folder: File.expand_path("../../examples/rails", __dir__),
                                        address: %r{serves config\.ru on (http://\S+)$})

    assert_equal "200", served.get("/nap?seconds=0").code, served.output
    yield served, pidfile
    assert_predicate served.stop, :success?, served.output
    refute_path_exists pidfile
  end

  # The first request may be answered before all of them are there.
  def assert_workers(names, served)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    found = workers_of(served.pid)
    until found == names || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.01
      found = workers_of(served.pid)
    end

    assert_equal names, found, served.output
  end

  # What the master's children are called, without the mold and the reserve.
  def workers_of(master)
    children = File.read("/proc/#{master}/task/#{master}/children").split
    children.filter_map { |pid| File.read("/proc/#{pid}/cmdline")[/\Aheddle: (worker \d+)/, 1] }.sort
  end

  def serve_and_stop(*which)
    environment = ServedExample.bundle("rails").merge("RAILS_ENV" => "development", "PORT" => nil)
    command = [RbConfig.ruby, "bin/rails", "server", *which, "-b", "127.0.0.1", "-p", "0",
               "-P", File.join(@folder, "server.pid")]
    # What Rails prints first is where it was asked to listen, with port 0.
    served = ServedProcess.new(command, environment:, folder: File.expand_path("../../examples/rails", __dir__),
                                        address: %r{serves on (http://\S+)$})
    page = served.get("/")

    assert_equal "200", page.code, served.output
    assert_match(/A Rails 8/, page.body)
    assert_match(/Booting Heddle/, served.output)
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    codes = Array.new(5) { Thread.new { served.get("/nap?seconds=2").code } }.map(&:value)

    assert_equal ["200"], codes.uniq
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :<, 9, "one after the other it would be 10"
    assert_predicate served.stop, :success?, served.output
  end
end
