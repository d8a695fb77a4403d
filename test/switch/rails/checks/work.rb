# frozen_string_literal: true

require "fileutils"

# Jobs, caches, databases, and what belongs to one request.
module Switch
  class RailsApplication
    check "jobs of Solid Queue beside the server", at: :production, smoke: true do
      path = File.join(application.folder, "tmp/worked-#{application.server}")
      FileUtils.rm_f(path)
      expect post("/probes/work", "path" => path).code == "202", "not enqueued"
      wait_for("the job") { File.exist?(path) }
      JSON.parse(File.read(path)).except("isolation")
    end

    check "bin/jobs" do
      path = File.join(application.folder, "tmp/worked-jobs-#{application.server}")
      FileUtils.rm_f(path)
      production = { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64 }
      run("bin/rails", "runner", "WorkJob.perform_later(#{path.dump})", environment: production)
      log = File.join(application.folder, "log/jobs.log")
      pid = Process.spawn(application.environment.merge(production), "bin/jobs", chdir: application.folder, out: log,
                                                                                 err: %i[child out], pgroup: true)
      wait_for("the job") { File.exist?(path) }
      Process.kill("TERM", pid)
      ended = wait_for("its end") { Process.wait2(pid, Process::WNOHANG) }
      pid = nil
      [JSON.parse(File.read(path)), ended.last.exitstatus]
    ensure
      Process.kill("KILL", -pid) if pid
    end

    check "Solid Cache", at: :production do
      value = "hello #{application.server}"
      found = JSON.parse(get("/probes/cached?value=#{URI.encode_www_form_component(value)}").body)
      again = JSON.parse(get("/probes/cached").body)
      expect found.first == value && again.first == value, "#{found} #{again}"
      counts = at_once(8) { JSON.parse(get("/probes/cached").body)[1] }
      [again.last, again[1] - found[1], counts.uniq.size]
    end

    check "a transaction that is rolled back", at: :production do
      JSON.parse(get("/probes/transaction").body)
    end

    check "state of requests at once", at: :production do
      at_once(10) { |number| get("/probes/nap?seconds=0.3&visitor=#{number}").body } == Array.new(10, &:to_s)
    end

    check "log tags", at: :production do
      ids = at_once(8) do |number|
        id = "tag-#{application.server}-#{number}"
        get("/probes/log?visitor=v#{number}", "x-request-id" => id)
        id
      end
      lines = wait_for("the log") do
        found = served.output.lines.grep(/step \d of v\d/)
        found if found.size >= 24
      end
      ids.each_with_index.map { |id, number| lines.grep(/\[#{id}\] .*v#{number}$/).size }
    end

    check "/up under load", at: :production do
      stop = false
      pages = Array.new(6, 0)
      load = pages.each_index.map do |number|
        Thread.new do
          pages[number] += 1 while !stop && get("/posts").code == "200"
        end
      end
      # How many pages others get while one waits for /up, for the machine may be busy.
      meanwhile = Array.new(40) do
        before = pages.sum
        expect get("/up").code == "200", "/up has failed"
        (pages.sum - before).tap { sleep 0.02 }
      end
      stop = true
      load.each(&:join)
      expect pages.all?(&:positive?), "no load: #{pages}"
      Figure.new(number: meanwhile.max(2).last, unit: "pages first", slack: 6)
    end

    check "memory after 3,000 requests", at: :production do
      requests = lambda do |count|
        at_once(4) { Net::HTTP.start(served.uri.host, served.uri.port) { |http| (count / 4).times { http.get("/posts/new") } } }
      end
      requests.call(1_000)
      before = served.memory
      requests.call(2_000)
      # Two processes warm up in place of Puma's one.
      Figure.new(number: (served.memory - before) / 1e6, unit: "MB more", allowed: 2.0, slack: 20)
    end
  end
end
