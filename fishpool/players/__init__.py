"""Those who act: scripted strategies; every player sees only the view that its game's rules allow."""
