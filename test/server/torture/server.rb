# frozen_string_literal: true

# The server that is tortured: prints its port, serves until its input ends.

require "json"
require "tempfile"
require "heddle/server"
require "rack/lint"
require_relative "../../support/constants"

# A body that is a file.
page = Struct.new(:to_path) do
  def each = yield(File.binread(to_path))
end

file = Tempfile.create("heddle")
file.write("f" * 300_000)
file.close

server = nil
app = lambda do |env|
  case env["PATH_INFO"]
  when "/statistics" then [200, {}, [JSON.generate(server.statistics)]]
  when "/large" then [200, {}, ["x" * 1_000_000]]
  when "/file" then [200, {}, [page.new(file.path)].first]
  when "/each" then [200, {}, Array.new(5) { |number| number.to_s * 30_000 }.each]
  when "/stream"
    [200, {}, lambda { |stream|
      5.times { |number| stream << (number.to_s * 30_000) }
      stream.close
    }]
  else [200, { "content-type" => "text/plain" }, [env["rack.input"].read.to_s.bytesize.to_s]]
  end
end

limits = { idle_timeout: 300, head_timeout: 300, write_timeout: 300, body_grace: 300, linger_timeout: 0.2 }
configuration = Constants.configuration(bind: ["127.0.0.1:0"], access_log: false, stop_timeout: 5, **limits,
                                        selector: ENV["HEDDLE_SELECTOR"]&.to_sym)
server = Heddle::Server.new(configuration)
url = server.open.first
Thread.new do
  $stdin.read
  server.stop
rescue NoMemoryError
  retry # whoever stops a server is told that it did not work
end
server.run(Rack::Lint.new(app)) do
  puts url
  $stdout.flush
end
File.unlink(file.path)
