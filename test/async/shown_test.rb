# frozen_string_literal: true

require "test_helper"
require_relative "../cli/served_folder"

# The tasks of an application on the async gem, as `heddle status` shows them from outside.
class AsyncShownTest < Minitest::Test
  include ServedFolder

  APPLICATION = <<~RUBY
    require "async"
    run do |env|
      Async(annotation: "collect prices") do |task|
        [task.async(annotation: "ask shop 1") { sleep 0.01 until File.exist?("go") },
         task.async { File.write("arrived", "") && sleep(0.01) until File.exist?("go") }].each(&:wait)
      end.wait
      [200, {}, []]
    end
  RUBY

  # The task below the fiber of its request, and its children below it: the one without an annotation by the place of
  # its block. Between them are the places where each waits.
  TREE = /
    ^fiber\ \d+\ \(waiting,\ not\ a\ task\)\n (?:\ {4}.+\n)*
    \ {2}collect\ prices\ \(waiting\)\n (?:\ {6}.+\n)*
    \ {4}ask\ shop\ 1\ \(waiting\)\n (?:\ {8}.+\n)+
    \ {4}config\.ru:5\ \(waiting\)\n \ {8}\S+config\.ru:5:in
  /x

  def setup
    super
    Dir.mkdir(file("tmp"))
    File.write(file("config.ru"), APPLICATION)
    start("serve")
    @socket = waiting_request("/prices")
  end

  def teardown
    File.write(file("go"), "")
    @socket&.read(12)
    @socket&.close
    super
  end

  def test_status_shows_the_tree_of_tasks
    shown = nil
    wait_until { (shown = heddle_output("status", "--tasks")).match?(TREE) }

    assert_match(TREE, shown)
  end
end
