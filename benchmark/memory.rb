# frozen_string_literal: true

# ruby benchmark/memory.rb [REQUESTS]
#
# Memory of each process of Heddle and of Puma with two workers, after so many requests: PSS, in which a page that n
# processes share counts 1/n, and what a process has written to and shares with none. Once with an application of one
# line, once with Sinatra, and once with Sinatra and Sequel. Needs Linux.

require_relative "../bin/support/gem_paths"
require "net/http"
require "rbconfig"
require "tmpdir"
require_relative "support/process_tree"
require_relative "support/process_usage"
require_relative "../test/support/free_port"

REQUESTS = Integer(ARGV.first || 3_000)
CLIENTS = 8
# Requests of a connection: new ones reach all workers.
KEPT = 10
# Requests one after the other before the load: Tilt can't compile a template for two requests at the same time.
FIRST = 20
# Seconds after the load: reserve workers, finalizers and the like have settled then.
REST = 2

APPLICATIONS = {
  "hello" => 'run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }',
  "Sinatra" => <<~RUBY,
    require "sinatra/base"
    run(Class.new(Sinatra::Base) do
      set :host_authorization, permitted_hosts: []
      get("/") { erb "<p>Hello <%= params[:name] || :world %></p>" }
    end)
  RUBY
  "Sinatra with Sequel" => <<~RUBY
    require "sinatra/base"
    require "sequel"
    DB = Sequel.connect("sqlite://posts.db")
    DB.create_table?(:posts) { String :title }
    class Post < Sequel::Model; end
    DB[:posts].insert(title: "one") if Post.empty?
    DB.disconnect
    run(Class.new(Sinatra::Base) do
      set :host_authorization, permitted_hosts: []
      get("/") { erb "<% Post.limit(5).each do |post| %><p><%= post.title %></p><% end %>" }
    end)
  RUBY
}.freeze

# Without reserve workers, one of which would be there by chance on a busy machine.
ADDRESS = "tcp://127.0.0.1:%d"
SERVERS = {
  "Heddle" => [File.expand_path("../exe/heddle", __dir__), "serve", "--no-access-log", "-w", "2",
               "--reserve-workers", "0", "-b", ADDRESS],
  "Puma" => [Gem.bin_path("puma", "puma"), "-q", "-w", "2", "-b", ADDRESS]
}.freeze

def await(port)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  begin
    Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
  rescue SystemCallError
    abort("no server answers on port #{port}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep(0.1)
    retry
  end
end

def request(port)
  (REQUESTS / CLIENTS / KEPT).times do
    Net::HTTP.start("127.0.0.1", port) { |http| KEPT.times { http.get("/?name=a").value } }
  end
end

def title_of(pid) = File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip

# => [[title, PSS in MB, private MB]] of all processes
def measure(command, folder)
  port = FreePort.find
  pid = spawn({ "RACK_ENV" => "production" }, RbConfig.ruby, *command.map { |word| format(word, port) },
              chdir: folder, out: File::NULL, pgroup: true)
  await(port)
  FIRST.times { Net::HTTP.get_response(URI("http://127.0.0.1:#{port}/")).value }
  Array.new(CLIENTS) { Thread.new { request(port) } }.each(&:join)
  sleep(REST)
  Bench::ProcessTree.new(pid).pids.map do |one|
    [title_of(one), Bench::ProcessUsage.pss_megabytes_of(one), Bench::ProcessUsage.private_megabytes_of(one)]
  end
ensure
  Process.kill("TERM", pid)
  Process.wait(pid)
end

APPLICATIONS.each do |application, text|
  Dir.mktmpdir do |folder|
    File.write(File.join(folder, "config.ru"), text)
    SERVERS.each do |server, command|
      processes = measure(command, folder)
      puts "#{server}, #{application}, #{REQUESTS} requests: #{processes.sum { |_, pss| pss }.round(1)} MB"
      processes.each do |title, *megabytes|
        puts format("  %<title>-40.40s  PSS %<pss>6.1f MB   private %<own>6.1f MB", title:, pss: megabytes[0],
                                                                                    own: megabytes[1])
      end
    end
  end
end
