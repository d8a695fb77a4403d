# frozen_string_literal: true

require_relative "cluster_case"

# The option solid_queue: a process of jobs beside the server, with workers and without. The application contains a stub
# of the gem.
class SolidQueueTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    module SolidQueue
      class Supervisor
        def self.start(mode:)
          reader, writer = IO.pipe
          trap("INT") { writer.close }
          File.write("jobs.new", "\#{$$} \#{mode} code 1")
          File.rename("jobs.new", "jobs")
          reader.read
          File.write("ended", "\#{$$}\\n", mode: "a")
        end
      end
    end
    run ->(env) { [200, { "x-worker" => $$.to_s }, ["code 1"]] }
  RUBY

  def setup
    super
    write("config.ru", APP)
  end

  # @return [Array(Integer, String)] the process of the jobs, and what it says
  def jobs(text = "code 1")
    found = nil
    wait_until("no jobs") { (found = jobs_file) && found.last.include?(text) }
    found
  end

  def jobs_file
    pid, text = File.read(path("jobs")).split(" ", 2)
    [Integer(pid), text]
  rescue Errno::ENOENT
    nil
  end

  def ended = File.exist?(path("ended")) ? File.readlines(path("ended")).map(&:to_i) : []

  [0, 2].each do |workers|
    kind = workers == 0 ? "a_single_process" : "workers"

    define_method("test_jobs_run_beside_#{kind}_and_end_with_the_server") do
      serve(workers:, environment: { "RACK_ENV" => "production", "SOLID_QUEUE_IN_PUMA" => "true" })
      pid, text = jobs

      assert_equal "fork code 1", text
      assert_equal "code 1", served.get("/").body
      refute_includes workers_of_the_server, pid
      assert_predicate served.stop, :success?
      assert_equal [pid], ended
      refute alive?(pid)
    end

    define_method("test_the_server_of_#{kind}_stops_when_the_jobs_end") do
      serve("--solid-queue", workers:)
      pid, = jobs
      signal("KILL", pid)
      served.wait

      assert_match(/Solid Queue \(pid #{pid}\) has ended; stopping the server/, served.output)
    end

    define_method("test_jobs_beside_#{kind}_end_when_the_server_is_killed") do
      serve("--solid-queue", workers:)
      pid, = jobs
      signal("KILL")
      wait_until("the jobs go on") { !alive?(pid) }

      assert_equal [pid], ended
    end

    define_method("test_an_application_without_the_gem_does_not_boot_in_#{kind}") do
      write("config.ru", "run ->(env) { [200, {}, []] }")
      error = assert_raises(RuntimeError) { serve("--solid-queue", workers:) }

      assert_match(/solid_queue needs the gem solid_queue/, error.message)
    end
  end

  def workers_of_the_server = [served.pid, Integer(served.get("/")["x-worker"])]

  def test_a_reload_replaces_the_jobs
    serve("--solid-queue")
    before, = jobs
    write("config.ru", APP.gsub("code 1", "code 2"))
    signal("HUP")
    after, = jobs("code 2")

    assert_equal [before], ended
    refute_equal before, after
    assert alive?(after)
  end
end
