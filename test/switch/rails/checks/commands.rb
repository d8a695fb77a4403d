# frozen_string_literal: true

require "fileutils"
require "pty"

# The application's commands, and the server's life.
module Switch
  class RailsApplication
    check "rails test in parallel" do
      output = run("bin/rails", "test", environment: { "PARALLEL_WORKERS" => "2" })
      output[/^\d+ runs, .*$/]
    end

    check "a system test by selenium" do
      output = run("bin/rails", "test:system", environment: { "SE_AVOID_STATS" => "true", "SE_OFFLINE" => "true" })
      output[/^\d+ runs, .*$/]
    end

    check "rails runner" do
      run("bin/rails", "runner", "puts [Post.count.class, ActiveSupport::IsolatedExecutionState.isolation_level].inspect")
    end

    check "rails console" do
      output = run("bin/rails", "console", "--", "--nomultiline", "--noautocomplete",
                   input: "6 * 7\nPost.where(id: 0).count\nActiveSupport::IsolatedExecutionState.isolation_level\n")
      found = output.lines.map(&:strip).grep(/\A(=> )?(\d+|:\w+)\z/)
      expect found.first.to_s.end_with?("42"), output
      found
    end

    check "rake, and Rails' middleware" do
      expect run("bundle", "exec", "rake", "db:version").include?("version"), "no version"
      run("bin/rails", "middleware").lines.grep(/\Ause|\Arun/).map(&:strip)
    end

    check "bin/dev" do
      port = Served.free_port
      dev = application.serve(:development, command: ["bin/dev"], port:)
      code = request(Net::HTTP::Get.new("/posts"), to: dev).code
      addresses = %w[127.0.0.1 127.0.0.2].select { |address| connects?(address, port) }
      [code, addresses, ended(dev, "INT"), File.exist?(File.join(application.folder, "tmp/pids/server.pid"))]
    ensure
      dev&.stop
    end

    check "bin/rails server in production" do
      port = Served.free_port
      command = ["bin/rails", "server", "-b", "127.0.0.1", "-p", port.to_s, "-e", "production"]
      server = application.serve(:production, command:, port:)
      page = request(Net::HTTP::Get.new("/probes/broken", "accept" => "text/html"), to: server)
      [page.code, page.body.include?("on purpose"), ended(server)]
    ensure
      server&.stop
    end

    check "a request that runs when the server is asked to end" do
      server = application.serve(:production)
      answer = Thread.new { request(Net::HTTP::Get.new("/probes/nap?seconds=2&visitor=last"), to: server).body }
      wait_for("the request") { server.output.include?("/probes/nap") }
      stopping = Thread.new { ended(server) }
      [answer.value, stopping.value]
    ensure
      server&.stop
    end

    check "a second server on the same pidfile" do
      first = application.serve(:development)
      port = Served.free_port.to_s
      output, status = Open3.capture2e(application.environment, "bin/rails", "server", "-p", port, "-b", "127.0.0.1",
                                       chdir: application.folder)
      [status.exitstatus, output[/A server is already running/]]
    ensure
      first&.stop
    end

    check "config.force_ssl" do
      path = File.join(application.folder, "config/environments/production.rb")
      text = File.read(path)
      File.write(path, text.sub(/^end\s*\z/, "  config.force_ssl = true\nend\n"))
      server = application.serve(:production)
      plain = request(Net::HTTP::Get.new("/posts?a=1", "host" => "shop.example"), to: server)
      secure = request(Net::HTTP::Get.new("/probes/headers_of_all_kinds",
                                          "host" => "shop.example", "x-forwarded-proto" => "https"), to: server)
      [plain.code, plain["location"], secure.code, secure["strict-transport-security"],
       secure.get_fields("set-cookie").map { |cookie| cookie.match?(/; ?secure/i) }]
    ensure
      server&.stop
      File.write(path, text) if text
    end

    # Heddle's section of docs/rails.md on the Dockerfile names the new command.
    check "the Dockerfile's commands, Thruster in front" do
      folder = application.folder
      dockerfile = File.read(File.join(folder, "Dockerfile"))
      expect dockerfile.include?("bootsnap precompile"), "another Dockerfile"
      production = { "RAILS_ENV" => "production", "SECRET_KEY_BASE_DUMMY" => "1" }
      run("bundle", "exec", "bootsnap", "precompile", "-j", "1", "app/", "lib/", environment: production)
      run("bin/rails", "assets:precompile", environment: production)
      public_port = Served.free_port
      inner = Served.free_port
      serve = application.server == "heddle" ? %w[bundle exec heddle serve] : %w[./bin/rails server]
      server = application.serve(:production, port: public_port, more: { "HTTP_PORT" => public_port.to_s,
                                                                         "TARGET_PORT" => inner.to_s },
                                              command: ["bin/docker-entrypoint", "./bin/thrust", *serve])
      page = request(Net::HTTP::Get.new("/posts"), to: server)
      expect page.code == "200", "#{page.code}: #{page.body}"
      style = page.body[%r{href="(/assets/[^"]+\.css)"}, 1]
      [page.code, request(Net::HTTP::Get.new(style), to: server).code, dockerfile[/^CMD .*$/]]
    ensure
      server&.stop
    end

    check "debugger" do
      port = Served.free_port
      command = ["bin/rails", "server", "-b", "127.0.0.1", "-p", port.to_s]
      terminal, keyboard, pid = PTY.spawn(application.environment, *command, chdir: application.folder)
      screen = +""
      reading = Thread.new do
        loop { screen << terminal.readpartial(4_096).scrub }
      rescue EOFError, Errno::EIO
        nil
      end
      wait_for("the server") { screen.match?(/Ctrl-?\+?C/i) }
      # Once: Net::HTTP would ask again when it has waited too long, and the debugger would stop again.
      answer = Thread.new do
        Net::HTTP.start("127.0.0.1", port, read_timeout: Probe::TIMEOUT, max_retries: 0) do |http|
          http.get("/probes/stop_here").body
        end
      end
      wait_for("the prompt") { screen.match?(/\(r?(db|uby).*\)/) }
      keyboard.puts("p answer * 1000 + 7")
      wait_for("the value") { screen.include?("42007") }
      sleep 1 # the prompt stands for so long at least, on any machine, which is a stall elsewhere
      keyboard.puts("continue")
      text = answer.value
      # Puma may hang: see #ended.
      Process.kill(application.server == "puma" ? "KILL" : "TERM", pid)
      wait_for("its end") { Process.wait(pid, Process::WNOHANG) }
      pid = nil
      reading.join(Probe::TIMEOUT) # now it has said all that it says
      [text, screen[/\(r?(db|uby).*/m].scan(/stall|blocked|callback/i)]
    ensure
      Process.kill("KILL", pid) && Process.wait(pid) if pid
      reading&.kill
    end
  end
end
