# frozen_string_literal: true

require_relative "cluster_case"

# A deployment puts each release into a folder of its own and lets the link `current` point to the newest one.
class ClusterReleaseLinkTest < Minitest::Test
  include ClusterCase

  def setup
    super
    release("one")
    link("one")
  end

  def teardown
    # A new master is no child of the test's.
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  def release(name)
    write("#{name}/config.ru", <<~RUBY)
      run { [200, { "x-worker" => $$.to_s }, ["#{name} \#{ENV["BUNDLE_GEMFILE"]}"]] }
    RUBY
    write("#{name}/Gemfile", "")
  end

  # In its place at once, as Capistrano does it.
  def link(name)
    File.symlink(name, path("current.new"))
    File.rename(path("current.new"), path("current"))
  end

  # Started in the link, as from a shell.
  def serve(*arguments)
    environment = { "RACK_ENV" => "production", "PWD" => path("current"), "RUBYOPT" => nil,
                    "BUNDLE_GEMFILE" => path("one/Gemfile") }
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "--reserve-workers", "0", "-p", "0", "-b", "127.0.0.1",
               "--no-access-log", *arguments]
    @served = ServedProcess.new(command, folder: path("current"), environment:)
  end

  def answer = served.get("/").body

  def test_a_reload_serves_the_release_that_the_link_names_then
    serve
    release("two")
    link("two")
    FileUtils.remove_entry(path("one"))
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")

    assert_match(/\Atwo /, answer)
  end

  def test_touching_the_restart_file_of_the_newest_release_reloads
    serve
    release("two")
    link("two")
    write("two/tmp/restart.txt", "")
    wait_for("reloaded: 2 workers serve the new code")

    assert_match(/\Atwo /, answer)
  end

  def test_a_release_that_does_not_load_leaves_the_former_one_to_a_mold_that_is_loaded_again
    serve
    write("two/config.ru", "raise 'broken'")
    link("two")
    signal("HUP")
    wait_for("reload failed: config.ru can't be loaded: RuntimeError: broken")
    mold = children_of(served.pid).find { |pid| File.read("/proc/#{pid}/cmdline").start_with?("heddle: mold") }
    signal("KILL", mold)
    wait_for("loading the application again")
    former = workers.each { |pid| signal("TERM", pid) }
    wait_until { !workers.intersect?(former) }

    assert_match(/\Aone /, answer)
  end

  def test_a_new_master_has_the_gems_of_the_release_that_the_link_names
    serve("--pidfile", "../server.pid")
    old = served.pid
    release("two")
    link("two")
    signal("USR2")
    wait_until { !alive?(old) }
    @master = File.read(path("server.pid")).to_i

    assert_equal "two #{path("current/Gemfile")}", answer
    signal("TERM", @master)
    wait_until { !alive?(@master) }
  end
end
