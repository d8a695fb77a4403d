# frozen_string_literal: true

require "test_helper"
require "net/http"
require "open3"
require "tmpdir"

# The command line of docs/rollout.md starts Puma, and with the variable Heddle: both from one folder and one bundle.
class RolloutTest < Minitest::Test
  PAGE = File.read(File.join(ROOT, "docs/rollout.md"))
  LINE = PAGE[/^exec (bundle exec \$\{WEB_SERVER:-puma\})$/, 1]

  def test_metrics_and_events_of_the_page_exist
    metrics = PAGE.scan(/`(heddle_\w+)/).flatten
    events = PAGE[/^## When to go back.*?^## /m].scan(/`([a-z]+_[a-z_]+)`/).flatten

    refute_empty metrics
    refute_empty events
    assert_empty(metrics.reject { |name| table("observability.md").include?("`#{name}{") })
    assert_empty(events.reject { |name| table("events.md").include?("`#{name}` |") })
  end

  def test_variable_chooses_the_server_and_its_absence_goes_back
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), 'run ->(_env) { [200, {}, [defined?(Puma) ? "puma" : "heddle"]] }')
      FileUtils.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/puma.rb"), "bind 'tcp://127.0.0.1:0'\nthreads 2, 2\n")
      File.write(File.join(folder, "config/heddle.rb"), "bind '127.0.0.1:0'\nworkers 0\n")

      assert_equal "puma", served(folder, nil)
      assert_equal "heddle", served(folder, "heddle serve")
      assert_equal "puma", served(folder, nil)
    end
  end

  private

  def table(page) = File.read(File.join(ROOT, "docs", page)).lines.grep(/\A\|/).join

  # @return [String] which server the command line has started
  def served(folder, server)
    command = LINE.delete_prefix("bundle exec ")
    environment = { "WEB_SERVER" => server, "RACK_ENV" => "production",
                    "PATH" => "#{programs(folder)}:#{ENV.fetch("PATH")}" }
    Open3.popen2e(environment, "sh", "-c", "exec #{command}", chdir: folder) do |_, output, process|
      lines = []
      until (port = lines.last.to_s[%r{http://127\.0\.0\.1:(\d+)}, 1])
        lines << (output.wait_readable(30) && output.gets) || flunk(lines.join)
      end
      Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
    ensure
      Process.kill(:TERM, process.pid)
      process.join
    end
  end

  # The commands of both gems, as a bundle has them.
  def programs(folder)
    bin = File.join(folder, "bin")
    FileUtils.mkdir_p(bin)
    { "puma" => %(load Gem.activate_bin_path("puma", "puma", ">= 0")), "heddle" => %(load "#{ROOT}/exe/heddle") }
      .each do |name, load|
      File.write(File.join(bin, name), "#!#{RbConfig.ruby} -I#{ROOT}/lib\n#{load}\n", perm: 0o755)
    end
    bin
  end
end
