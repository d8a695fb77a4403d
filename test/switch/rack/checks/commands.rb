# frozen_string_literal: true

require "fileutils"

# The application's commands.
module Switch
  class RackApplication
    check "jobs of Sidekiq", at: :production do
      path = File.join(application.folder, "log/worked-#{application.server}")
      FileUtils.rm_f(path)
      expect post("/jobs", "path" => path).code == "200", "not enqueued"
      pid = Process.spawn(application.environment, "bundle", "exec", "sidekiq", "-r", "./app.rb", "-c", "2",
                          chdir: application.folder, out: File.join(application.folder, "log/sidekiq.log"),
                          err: %i[child out], pgroup: true)
      wait_for("the job") { File.exist?(path) }
      Process.kill("TERM", pid)
      ended = wait_for("its end") { Process.wait2(pid, Process::WNOHANG) }
      pid = nil
      [JSON.parse(File.read(path)), ended.last.exitstatus]
    ensure
      Process.kill("KILL", -pid) if pid
    end

    check "RSpec with Capybara" do
      run("bundle", "exec", "rspec")[/^\d+ examples.*$/]
    end

    check "rake" do
      run("bundle", "exec", "rake", "count").lines.last
    end
  end
end
