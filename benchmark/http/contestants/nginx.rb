# frozen_string_literal: true

require "open3"
require_relative "../application"

module Bench
  module HTTP
    module Contestants
      # nginx with one worker, which answers with the same bytes without running a program: what a server in C costs.
      class Nginx < Contestant
        # bin/bench puts one there where the system has none.
        PLACES = [File.join(ROOT, "vendor", "nginx", "usr", "sbin")].freeze
        NO_APPLICATION = "runs no application"

        def key = "nginx"

        def role = :baseline

        def version
          words, = Open3.capture2e(program, "-v")
          "#{words[%r{nginx/([\d.]+)}, 1]}, one worker and its master"
        end

        def excludes(row_key) = row_key.start_with?("sleep", "stream") ? NO_APPLICATION : nil

        def command(port, folder, _ruby_flags)
          { "12k" => Application::BODY_12K, "12m" => Application::BODY_12M }
            .each { |name, body| File.binwrite(File.join(folder, name), body) }
          path = File.join(folder, "nginx.conf")
          File.write(path, configuration(port, folder))
          [program, "-p", folder, "-c", path, "-e", "stderr"]
        end

        private

        def program
          folders = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR) + %w[/usr/sbin /usr/local/sbin] + PLACES
          folders.map { |folder| File.join(folder, "nginx") }.find { |path| File.executable?(path) } or
            raise Unavailable, "nginx is not installed"
        end

        # Under root, nginx runs its worker as the user `nobody`, who could not read the folder.
        def configuration(port, folder)
          temporary = %w[client_body proxy fastcgi uwsgi scgi].map { |kind| "#{kind}_temp_path #{folder}/#{kind};" }
          <<~NGINX
            #{"user root;" if Process.uid.zero?}
            daemon off;
            worker_processes 1;
            pid #{folder}/nginx.pid;
            error_log stderr warn;
            events { worker_connections 16384; }
            http {
              access_log off;
              #{temporary.join("\n  ")}
              default_type text/plain;
              sendfile on;
              tcp_nopush on;
              open_file_cache max=16;
              keepalive_requests 1000000000;
              keepalive_timeout 300s;
              client_body_buffer_size 128k;
              server {
                listen 127.0.0.1:#{port} backlog=4096;
                root #{folder};
                location = /hello { return 200 "#{Application::HELLO.chomp}\\n"; }
                location = /upload { return 200 "$content_length\\n"; }
                location = /json {
                  default_type application/json;
                  #{json_headers.join("\n      ")}
                  return 200 '#{JSON.generate(Application::JSON_OBJECT)}';
                }
              }
            }
          NGINX
        end

        def json_headers
          Application::JSON_HEADERS.except("content-type").map { |name, value| "add_header #{name} '#{value}';" }
        end
      end
    end
  end
end
