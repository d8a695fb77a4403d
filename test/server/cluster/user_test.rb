# frozen_string_literal: true

require_relative "cluster_case"
require "etc"
require "open3"

# A server that root starts becomes another user when its sockets are open.
class ClusterUserTest < Minitest::Test
  include ClusterCase

  UID = 65_534

  APP = <<~'RUBY'
    run ->(_env) { [200, {}, ["#{Process.pid} #{Process.uid} #{Process.euid} #{Process.gid} #{ENV["USER"]}"]] }
  RUBY

  def setup
    skip "needs root, to become another user" unless Process.uid.zero?
    super
    write("config.ru", APP)
    FileUtils.chown_R(UID, nil, @folder)
  end

  def teardown
    signal("KILL", @master) if @master # it is no child of the test's
    super if @folder
  end

  def account = Etc.getpwuid(UID).name

  def serve(*, **)
    super("--user", "#{account}:daemon", "--log-file", path("log"), "--pidfile", path("pid"),
          "--control", "unix:#{path("control.sock")}", *, **)
  end

  def privileged_port
    (600..1_023).find do |port|
      TCPServer.new("127.0.0.1", port).close
      true
    rescue SystemCallError
      false
    end
  end

  def identity = served.get("/").body.split.drop(1)

  # => real, effective, saved and file system IDs, and capabilities
  def rights(pid) = File.read("/proc/#{pid}/status").scan(/^(?:Uid|Gid|Groups|CapEff|CapPrm):\t(.*?)\s*$/).flatten

  def descendants(pid) = [pid, *children_of(pid).flat_map { |child| descendants(child) }]

  def test_all_processes_become_the_user_when_a_privileged_port_is_open
    serve("-b", "127.0.0.1:#{privileged_port}")
    gid = Etc.getgrnam("daemon").gid

    assert_equal [UID.to_s, UID.to_s, gid.to_s, account], identity
    all = []
    wait_until("there are not all processes") { (all = descendants(served.pid)).size >= 4 }
    all.map! { |pid| rights(pid) }
    ids = [[UID] * 4, [gid] * 4].map { |four| four.join("\t") }

    assert_equal [[*ids, gid.to_s, "0" * 16, "0" * 16]], all.uniq
  end

  def test_master_reads_the_memory_of_its_workers
    serve

    wait_until("no memory") { client.status[:workers].all? { |worker| worker[:memory].to_i > 1_000_000 } }
  end

  def test_files_belong_to_the_user_and_a_renamed_log_is_opened_again
    serve("--access-log")
    owners = %w[log pid control.sock].map { |file| File.stat(path(file)).uid }

    assert_equal [UID] * 3, owners
    File.rename(path("log"), path("log.1"))
    wait_until("the log is not opened again") { served.get("/") && File.exist?(path("log")) }

    assert_equal UID, File.stat(path("log")).uid
  end

  def test_file_that_a_link_in_place_of_the_log_names_keeps_its_owner
    FileUtils.rm_f(path("log"))
    Dir.mktmpdir do |folder|
      precious = File.join(folder, "precious")
      File.write(precious, "")
      File.symlink(precious, path("log"))
      serve

      assert_equal 0, File.stat(precious).uid
    end
  end

  def test_log_that_the_user_cannot_open_is_an_error
    FileUtils.mkdir(path("logs"), mode: 0o700)
    output, status = started("--user", account, "--log-file", path("logs/log"), "missing.ru")

    refute_predicate status, :success?
    assert_includes output, "can't write the log #{path("logs/log")} as uid #{UID}: Permission denied."
  end

  def test_log_of_another_owner_that_the_user_may_write_to_is_used
    File.write(path("log"), "")
    File.chmod(0o666, path("log"))
    # Without this capability, root can't give the file to the user.
    output, = started("--user", account, "--log-file", path("log"), "missing.ru",
                      setpriv: [need_program("setpriv"), "--bounding-set", "-chown"])

    assert_includes output, "there is no file missing.ru"
  end

  def test_stop_succeeds_if_the_user_may_not_remove_the_file_of_a_unix_socket
    FileUtils.mkdir(path("run"))
    serve("-b", "unix:#{path("run/socket")}")
    client.command("stop")

    assert_predicate served.wait, :success?, served.output
  end

  def test_root_without_the_capabilities_gets_an_error
    setpriv = [need_program("setpriv"), "--bounding-set", "-setuid,-setgid"]
    output, status = started("--user", account, setpriv:)

    refute_predicate status, :success?
    assert_includes output, "can't become the user #{account}: Operation not permitted. Root needs the capabilities"
    refute_includes output, "user.rb"
  end

  def test_restart_keeps_a_privileged_port
    serve("-b", "127.0.0.1:#{privileged_port}")
    former = master
    client.command("restart")
    wait_until("no new master") { (@master = master) && @master != former }

    assert_equal UID.to_s, identity.first
  end

  def test_reload_has_workers_of_the_user
    serve
    former = workers_now
    client.command("reload")
    wait_until("no new workers") { !former.include?(served.get("/").body.split.first) }

    assert_equal UID.to_s, identity.first
  end

  def workers_now = Array.new(20) { served.get("/").body.split.first }.uniq

  def test_folder_for_large_bodies_is_one_that_the_user_may_write_to
    folder = Dir.mktmpdir
    serve(environment: { "RACK_ENV" => "production", "TMPDIR" => folder })

    assert_equal "200", Net::HTTP.post(served.uri, "x" * 1_000_000).code
  ensure
    FileUtils.rm_rf(folder)
  end

  def test_unknown_user_is_an_error
    output, status = started("--user", "nobody-here")

    refute_predicate status, :success?
    assert_includes output, "can't become the user nobody-here: the user or the group does not exist"
  end

  def test_another_user_than_root_cannot_become_a_user
    output, status = started("--user", "root", uid: UID)

    refute_predicate status, :success?
    assert_includes output, "can't become the user root: only root can"
  end

  def started(*arguments, uid: 0, setpriv: [need_program("setpriv"), "--reuid=#{uid}", "--clear-groups"])
    Open3.capture2e({ "RACK_ENV" => "production" }, *setpriv, *ServedProcess::HEDDLE, "serve", "-p", "0",
                    "--workers", "2", *arguments, chdir: @folder)
  end
end

# The same with one process.
class UserTest < Minitest::Test
  include ClusterCase

  def setup
    skip "needs root, to become another user" unless Process.uid.zero?
    super
    FileUtils.chown_R(ClusterUserTest::UID, nil, @folder)
  end

  def teardown
    super if @folder
  end

  def serve(*) = super("--user", Etc.getpwuid(ClusterUserTest::UID).name, *, workers: 0)

  def test_stop_answers_requests_if_the_user_may_not_remove_the_file_of_a_unix_socket
    FileUtils.mkdir(path("run"))
    serve("-b", "unix:#{path("run/socket")}", "--stop-timeout", "60")
    socket = ask("/hold")
    wait_until("the request has not begun") { File.exist?(path("held")) }
    signal("TERM")
    wait_for("stopping")
    FileUtils.touch(path("go"))

    assert_includes socket.read, "code 1"
    assert_predicate served.wait, :success?, served.output
  end

  def test_single_process_becomes_the_user
    write("config.ru", ClusterUserTest::APP)
    serve

    assert_equal [ClusterUserTest::UID.to_s] * 2, served.get("/").body.split[1, 2]
  end
end
