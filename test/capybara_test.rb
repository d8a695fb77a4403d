# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The server of system tests, called as Capybara calls it. The gem is not needed: a file of its name defines what is
# tested.
class CapybaraTest < Minitest::Test
  CAPYBARA = <<~RUBY
    module Capybara
      def self.servers = @servers ||= { puma: ->(*) { raise LoadError, "Capybara is unable to load `puma`" } }
      def self.register_server(name, &block) = servers[name] = block
    end
  RUBY
  PROGRAM = <<~'RUBY'
    require "heddle/capybara"
    require "net/http"
    require "socket"
    app = lambda do |env|
      raise "no" if env["PATH_INFO"] == "/fail"
      puts "in a loop" if Fiber.scheduler
      [200, { "content-type" => "text/plain" }, [env["rack.input"].read]]
    end
    Capybara.servers.slice(:heddle, :puma).each do |name, server|
      %w[127.0.0.1 ::1].each do |host|
        port = TCPServer.open(host, 0) { |free| free.addr[1] }
        thread = Thread.new { server.call(app, port, host, Silent: true) }
        thread.report_on_exception = false
        begin
          answer = Net::HTTP.start(host, port) { |http| [http.post("/", "hello").body, http.post("/fail", "").code] }
          puts "#{name} #{host} #{answer.join(" ")}"
        rescue Errno::ECONNREFUSED
          thread.join(0.01)
          retry
        end
      end
    rescue SystemCallError, LoadError => e
      puts "#{name} #{e.class} #{e.message}"
    end
    exit!(0)
  RUBY

  def run_program(prefix = "", configuration: "")
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "capybara.rb"), CAPYBARA)
      Dir.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/heddle.rb"), configuration)
      lib = File.expand_path("../lib", __dir__)
      Open3.capture2e(RbConfig.ruby, "-I#{folder}", "-I#{lib}", "-e", "$stdout.sync = true\n#{prefix}#{PROGRAM}",
                      chdir: folder)
    end
  end

  # Of a machine without IPv6 only the name is printed.
  def test_it_serves_in_a_thread_and_prints_nothing_in_place_of_puma
    output, status = run_program

    assert_predicate status, :success?, output
    assert_includes output, "heddle 127.0.0.1 hello 500\n"
    assert_includes output, "puma 127.0.0.1 hello 500\n"
    assert_empty output.lines.grep_v(/\A(?:in a loop|(?:heddle|puma) \S+ hello 500|(?:heddle|puma) Errno::.*)\n\z/)
  end

  # Else a gem that does not work in fibers would fail in system tests alone.
  def test_requests_have_threads_where_the_configuration_file_says_so
    output, = run_program(configuration: "mode :thread\nworkers 2\nbind '127.0.0.1:1'\n")

    assert_includes output, "heddle 127.0.0.1 hello 500\n"
    refute_includes output, "in a loop"
  end

  def test_puma_stays_what_it_is_where_its_gem_is_loaded
    output, = run_program("Gem.loaded_specs['puma'] = Gem::Specification.new\n")

    assert_includes output, "heddle 127.0.0.1 hello 500\n"
    assert_match(/unable to load `puma`/, output)
  end
end
