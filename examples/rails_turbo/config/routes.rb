# frozen_string_literal: true

# Action Cable mounts itself at /cable.
Rails.application.routes.draw do
  root to: redirect("/rooms/lobby")
  get "up" => "rails/health#show", as: :rails_health_check

  resources :rooms, only: :show do
    resources :messages, only: :create
  end
end
