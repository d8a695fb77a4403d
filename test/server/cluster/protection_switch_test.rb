# frozen_string_literal: true

# test: long

require "test_helper"
require "heddle/server"
require "heddle/cli"
require "open3"
require "stringio"
require_relative "cluster_case"

# Whether new workers are protected, without processes.
class ClusterProtectionSwitchTest < Minitest::Test
  Switch = Heddle::Server::Cluster::ProtectionSwitch
  Worker = Struct.new(:protect, :mold, :told, :crash) do
    def channel = self
    def send_message(*what, **values) = self.told = [*what, values]
  end
  Mold = Struct.new(:configuration)
  Status = Struct.new(:termsig) do
    def signaled? = !termsig.nil?
  end

  def setup
    @now = 0.0
    @notices = []
    @switch = Switch.new(self, -> { @now })
  end

  def event(name, **fields) = @notices << Heddle::Events::TABLE.fetch(name).text(fields)

  def configuration(**) = Heddle::Server::Configuration.new(workers: 4, environment: "production", **)

  def worker(protect = nil, **) = Worker.new(protect, Mold.new(configuration(**)))

  def ended_by(name) = Status.new(name && Signal.list.fetch(name))

  def order = @switch.setting_for(3, configuration)

  def test_second_crash_within_ten_minutes_switches_protections_off_for_new_workers
    assert_nil order
    @switch.record_exit(worker, ended_by("SEGV"))

    assert_nil order
    @now = 599.0
    @switch.record_exit(worker, ended_by("ABRT"))

    assert_equal "2 workers ended by SIGSEGV and SIGABRT within 10 minutes", order
    assert_predicate @switch, :tripped?
    assert_equal [order], @notices.map { |text| text[/\A[^:]*/] }
    assert_match(/start without protections until `heddle protect on` or a restart/, @notices.first)
  end

  def test_crashes_more_than_ten_minutes_apart_leave_protections_on
    @switch.record_exit(worker, ended_by("SEGV"))
    @now = 600.0
    @switch.record_exit(worker, ended_by("SEGV"))

    assert_nil order
    @now = 601.0
    @switch.record_exit(worker, ended_by("FPE"))

    refute_nil order
  end

  def test_other_ends_of_workers_leave_protections_on
    3.times { ["KILL", "TERM", nil].each { |name| @switch.record_exit(worker, ended_by(name)) } }

    assert_nil order
  end

  def test_killed_worker_whose_report_of_a_crash_hung_has_crashed
    2.times { @switch.record_exit(worker.tap { |one| one.crash = "BUS" }, ended_by("KILL")) }

    assert_equal "2 workers ended by SIGBUS within 10 minutes", order
  end

  def test_crashes_of_unprotected_workers_do_not_count
    unprotected = [worker("some reason"), worker("canary_unprotected"), worker(protect: [])]
    unprotected.each { |one| @switch.record_exit(one, ended_by("BUS")) }

    assert_nil order
    2.times { @switch.record_exit(worker(true, protect: []), ended_by("BUS")) }

    refute_nil order
  end

  def test_operator_switches_protections_on_again_for_new_and_running_workers
    2.times { @switch.record_exit(worker, ended_by("SEGV")) }
    running = worker(order)
    @switch.switch(true, [running])

    assert_equal [true, true], [order, running.protect]
    assert_equal ["protect", { reason: nil }], running.told
    refute_predicate @switch, :tripped?
    @switch.record_exit(running, ended_by("SEGV"))

    assert_same true, order, "the crashes before do not count any more"
  end

  def test_control_group_stays_unprotected_when_the_others_are_switched
    @switch.switch(true, [canary = worker("canary_unprotected")])

    assert_nil canary.told
    assert_equal %w[canary_unprotected canary_unprotected], [0, 1].map { |index| group_order(index) }
    assert_same true, group_order(2)
  end

  def group_order(index) = @switch.setting_for(index, configuration(canary_unprotected: 0.5))
end

# A server with workers, whose protections an operator or crashes switch while it serves.
class ClusterProtectionSwitchedTest < Minitest::Test
  include ClusterCase

  # Says what is on in the worker; /lock waits in a native call; /compute computes until the file `go` is there; /crash
  # crashes, and its report hangs, because nobody reads it.
  APP = <<~RUBY
    require "io/nonblock"
    run do |env|
      case env["PATH_INFO"]
      when "/lock" then File.open("lock", "w") { |file| file.flock(File::LOCK_EX) }
      when "/compute" then File.write("computing", "") && (nil until File.exist?("go"))
      when "/crash"
        $unread, writer = IO.pipe
        nil until writer.write_nonblock("." * 65_536, exception: false) == :wait_writable
        writer.nonblock = false
        STDERR.reopen(writer)
        Process.kill("BUS", $$)
      end
      [200, { "x-worker" => $$.to_s }, [Heddle.enabled.sort.join(",")]]
    end
  RUBY
  ALL = "handoff,offload,preempt,stall_report"

  def setup
    super
    write("config.ru", APP)
  end

  def serve(*, workers: 2, **) = super("--control", "unix:control.sock", "--protect", ALL, *, workers:, **)

  def heddle(*arguments)
    output, status = Open3.capture2e(*ServedProcess::HEDDLE, *arguments, "--control", "unix:control.sock",
                                     chdir: @folder)

    assert_predicate status, :success?, output
    output
  end

  def protections = client.status[:workers].map { |one| one[:protection]&.sort&.join(",") }

  def wait_for_protections(*wanted) = wait_until("the protections are not #{wanted}") { protections == wanted }

  def test_operator_switches_protections_of_all_workers_off_and_on
    serve
    wait_for_protections(ALL, ALL)

    assert_equal "switching the protections of all workers off; heddle status shows them\n", heddle("protect", "off")
    wait_for_protections("", "")
    before = workers

    assert_match(/^protection: none/, heddle("status"))
    assert_match(/^without protection \(heddle protect off\): worker 0, 1$/, heddle("status"))
    assert_equal 0, metrics["heddle_protection_tripped"].values.first
    signal("KILL", before.first)
    wait_until("no other worker has started") { (client.status[:workers].map { |one| one[:pid] } - before).any? }
    wait_for_protections("", "")
    heddle("protect", "on")
    wait_for_protections(ALL, ALL)

    refute_match(/without protection/, heddle("status"))
    assert_match(/protections switched on \(heddle protect on\)/, served.output)
  end

  def test_server_that_starts_unprotected_gets_protections_when_they_are_switched_on
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-w", "2", "-p", "0", "--no-access-log", "--protect",
                                 "off", "--control", "unix:control.sock"],
                                folder: @folder, environment: { "RACK_ENV" => "production" })
    wait_for_protections("", "")
    heddle("protect", "on")
    wait_for_protections(ALL, ALL)

    assert_equal ALL, served.get("/").body
  end

  def test_requests_in_flight_end_properly_when_protections_are_switched
    serve(workers: 1)
    File.open(path("lock"), "w") do |lock|
      lock.flock(File::LOCK_EX)
      locked = ask("/lock")
      wait_until("the native call is not offloaded") { client.status[:workers][0].dig(:offload, :running) == 1 }
      computing = ask("/compute")
      wait_until { File.exist?(path("computing")) }
      heddle("protect", "off")
      wait_for_protections("")
      lock.flock(File::LOCK_UN)
      write("go", "")

      [locked, computing].each { |socket| assert_match(%r{\AHTTP/1.1 200}, socket.readpartial(10_000)) }
    end

    assert_equal "", served.get("/").body
    heddle("protect", "on")
    wait_for_protections(ALL.delete_prefix("handoff,")) # which needs a second worker
  end

  def test_status_lists_the_handoff_while_there_is_a_second_worker
    serve(workers: 1)
    wait_for_protections(ALL.delete_prefix("handoff,"))
    signal("TTIN")
    wait_for_protections(ALL, ALL)
    signal("TTOU")
    wait_for_protections(ALL.delete_prefix("handoff,"))
  end

  def test_workers_that_crash_twice_are_replaced_by_unprotected_ones
    serve
    signal("ILL", worker)
    wait_for("native code has crashed")
    wait_for_protections(ALL, ALL)
    crashing = ask("/crash")
    wait_for("SIGBUS: native code has crashed, and Ruby's report of the crash hangs")
    crashing.close
    wait_for("new workers start without protections")
    wait_until("no worker is unprotected") { protections.include?("") }

    assert_match(/2 workers ended by SIGILL and SIGBUS within 10 minutes: new workers start/, served.output)
    assert_equal ["", ALL], protections.sort
    assert_match(/^! protections are off in new workers: 2 workers ended by .* `heddle protect on` switches them on$/,
                 heddle("status"))
    assert_match(/^without protection \(2 workers ended by .*\): worker \d$/, heddle("status"))
    assert_equal 1, metrics["heddle_protection_tripped"].values.first
    heddle("protect", "on")
    wait_for_protections(ALL, ALL)

    refute_match(/without protection|protections are off/, heddle("status"))
    assert_equal 0, metrics["heddle_protection_tripped"].values.first
  end

  def test_unprotected_worker_after_crashes_has_no_changed_import_tables
    skip "reads tables of Linux with 64 bits" unless RbConfig::CONFIG["arch"].match?(/\A(?:x86_64|aarch64)-linux/)
    tables = File.expand_path("../../support/import_tables", __dir__)
    write("config.ru", "require #{tables.dump}\nrun { [200, { 'x-worker' => $$.to_s }, " \
                       "[ImportTables.read.reject { |file, _| file.end_with?('/heddle.so') }.flat_map { |_, slots| " \
                       "slots.select { |_, to| to.include?('/heddle.so+') }.keys.map { |slot| slot[/[^@]*/] } }" \
                       ".uniq.join(',')]] }")
    serve(workers: 1)

    assert_includes served.get("/").body.split(","), "rb_nogvl"
    2.times do
      killed = worker
      signal("ILL", killed)
      wait_until { client.status[:workers].any? { |one| one[:state] == "running" && one[:pid] != killed } }
    end

    # Those of programs that are started: the master has changed them, whatever the protections.
    assert_empty served.get("/").body.split(",") - %w[execve execv execl execle]
  end
end

# A server of one process.
class ProtectionSwitchedAloneTest < Minitest::Test
  include ClusterCase

  def test_operator_switches_protections_of_a_single_process_off_and_on
    write("config.ru", ClusterProtectionSwitchedTest::APP)
    serve("--control", "unix:control.sock", "--protect", "offload,preempt", workers: 0)

    assert_equal "offload,preempt", served.get("/").body
    output = StringIO.new
    run = ->(*words) { Heddle::CLI.run([*words, "--control", "unix:#{path("control.sock")}"], output:) }

    assert_equal 0, run.call("protect", "off")
    assert_equal "", served.get("/").body
    assert_equal 0, run.call("status")
    assert_match(/^without protection \(heddle protect off\): worker 0$/, output.string)
    assert_equal 0, run.call("protect", "on")
    assert_equal "offload,preempt", served.get("/").body
    assert_match(/protections switched off; .*protections switched on; heddle status shows them\n\z/m, output.string)
    wait_for("protections switched off (heddle protect off)")
    wait_for("protections switched on (heddle protect on)")
  end

  def test_protect_takes_one_word_of_two
    errors = StringIO.new

    assert_equal 2, Heddle::CLI.run(%w[protect maybe], errors:)
    assert_equal 2, Heddle::CLI.run(%w[protect], errors:)
    assert_equal "heddle: heddle protect needs the word on or off, but got maybe\n" \
                 "heddle: heddle protect needs the word on or off\n",
                 errors.string
  end
end
