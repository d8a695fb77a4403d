# frozen_string_literal: true

require "net/http"
require "tmpdir"

# A server of HTTP/2 in a process of its own: Heddle. `/silent` is never answered, and `/silent-ones` says how many such
# requests are open.
class HTTP2StandIn
  APPLICATION = <<~RUBY
    silent = 0
    run do |env|
      if env["PATH_INFO"] == "/silent"
        begin
          silent += 1
          sleep
        ensure
          silent -= 1
        end
      end
      [200, {}, [silent.to_s]]
    end
  RUBY
  ROOT = File.expand_path("../../..", __dir__)

  # @yieldparam address [String]
  def self.with
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), APPLICATION)
      command = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/heddle", "serve", "-p", "0"]
      server = IO.popen(command, chdir: folder, err: %i[child out])
      address = nil
      address = server.gets[%r{http://\S+:\d+}] until address
      yield address
    ensure
      Process.kill(:KILL, server.pid)
      server.close
    end
  end

  def self.silent(address) = Integer(Net::HTTP.get(URI("#{address}/silent-ones")))
end
